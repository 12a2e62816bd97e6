"""Like with like: the paper's own classifiers take their relatives' places, and averages run over the same classifiers."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.stats import axes, claims
from cnslib.stats.accuracy import ALL, Shares

AXES = pd.read_csv(paths.PUBLISHED / "axes.csv")
CONVNEXT, DEIT, DINO = "convnext_base.fb_in1k", "deit3_base_patch16_224.fb_in1k", "dinov1_ft_vit_base_patch16"


def shares(models: list[str]) -> Shares:
    """Every model has its own error rate, resamples included."""
    samples = np.broadcast_to(np.arange(len(models), dtype=float)[:, None] / 10, (3, 2, len(models), 2)).copy()
    return Shares(samples, ["heavy snow", ALL], np.array([4, 4]), models, [0.0, 1.0], 0.95)


def test_in_the_mini_world_nothing_changes():
    models = ["convnext", "deit", "vit"]
    pd.testing.assert_frame_equal(axes.themselves(AXES, models, {"classifier": "paper_model"}), AXES)
    assert axes.roles(AXES, models)["convnext"] == "convnext"
    listed = claims.read(paths.PUBLISHED / "claims.csv")
    pd.testing.assert_frame_equal(axes.claims(listed, axes.roles(AXES, models)), listed)
    assert axes.same(found := shares(models), pd.DataFrame(index=[CONVNEXT, DEIT])) is found


def test_an_evaluated_classifier_of_the_paper_stands_for_itself_without_a_note():
    found = axes.themselves(AXES, [CONVNEXT], {"classifier": "paper_model"}).query("axis == 'architecture'")
    assert found["classifier"].tolist()[:5] == ["resnet", "vit", "deit", CONVNEXT, "mixer"]
    assert found.set_index("classifier")["note"][CONVNEXT] == "" != found.set_index("classifier")["note"]["deit"]
    assert axes.roles(AXES, [CONVNEXT, DINO]) | {"convnext": 0, "dino": 0} == axes.roles(AXES, []) | {
        "convnext": 0,
        "dino": 0,
    }
    assert axes.roles(AXES, [DINO])["dino"] == DINO and "dino" not in axes.roles(AXES, [])


def test_claims_speak_of_the_evaluated_classifiers_and_shifts_stay():
    listed = claims.read(paths.PUBLISHED / "claims.csv")
    found = axes.claims(listed, axes.roles(AXES, [CONVNEXT, DEIT])).set_index("id")
    assert found.loc["deit_convnext", ["first", "second"]].tolist() == [DEIT, CONVNEXT]
    assert found.loc["vit_painting_low", "second"] == f"resnet; {DEIT}; {CONVNEXT}; mixer"
    assert found.loc["snow_gradual", ["first", "second"]].tolist() == ["heavy snow", "cartoon style"]


def test_averages_run_over_shared_classifiers_if_there_are_enough():
    ours = pd.DataFrame({"x": range(6)}, index=list("abcdef"))
    published = pd.DataFrame({"x": range(5)}, index=list("fedcz"))
    one, other = axes.alike(ours, published)
    assert one.index.tolist() == other.index.tolist() == list("fedc") and one["x"].tolist() == [5, 4, 3, 2]
    one, other = axes.alike(ours, published.drop(index="c"))
    assert one is ours and len(other) == 4
    assert axes.same(shares(list("abcdef")), published).models == list("cdef")


def test_restricted_shares_keep_each_classifiers_numbers():
    found = axes.restricted(shares(list("abcd")), ["d", "b", "z"])
    assert found.models == ["b", "d"] and found.samples[0, 0, :, 0].tolist() == pytest.approx([0.1, 0.3])


def test_a_single_classifier_is_compared_with_itself_and_else_with_the_mean():
    single = pd.DataFrame({"model": ["a", "a", "b"], "published": 0.5}, index=["fog", "rain", "dust"])
    each = pd.Series({("fog", "a"): 0.1, ("fog", "b"): 0.9})
    found = axes.beside(single, each, pd.Series({"fog": 0.4, "rain": 0.3}))
    assert found["ours"].to_dict() == {"fog": 0.1, "rain": 0.3}
    assert found["ours of"].to_dict() == {"fog": "a", "rain": "mean over classifiers"}
