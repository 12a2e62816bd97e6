import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from cnslib.models import registry
from cnslib.tools import gate

MISTAKEN = {"vit_base_patch16_224.augreg_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k"}  # mean and deviation 0.5, by timm
RESNET = "resnet50.a1_in1k"


def report(*cases):
    rows = [{"model": model, "preprocessing": how, "n": n, "right": round(accuracy * n)} for model, how, n, accuracy in cases]
    return gate.report(pd.DataFrame(rows)).set_index(["model", "preprocessing"])


def test_two_vits_of_the_paper_rest_on_the_wrong_preprocessing_and_no_other_timm_model():
    timm = [found for found in registry.entries().values() if found.kind == "timm"]
    cases = [(found.model, "model", 50_000, found.library_top1) for found in timm]
    table = report(*cases, *((found.model, "paper", 50_000, found.table7_top1) for found in timm))
    assert len(timm) == 21 and set(table.xs("model", level="preprocessing")["library"]) == {"agrees"}
    explained = table["explained_by"].groupby("model").first()
    assert set(explained.index[explained == "paper"]) == MISTAKEN
    assert set(explained.drop(list(MISTAKEN))) == {"model, paper"}


@pytest.mark.parametrize(
    ("n", "accuracy", "word"),
    [
        (50_000, 0.80382 + 0.003, "agrees"),
        (50_000, 0.80382 + 0.00302, "differs"),
        (500, 0.77, "compatible"),  # Wilson: 0.731 to 0.805
        (500, 0.75, "differs"),  # to 0.786
    ],
)
def test_the_tolerance_is_three_tenths_of_a_point_and_a_sample_is_judged_by_its_interval(n, accuracy, word):
    row = report((RESNET, "model", n, accuracy)).iloc[0]
    assert row["library"] == word and (row["low"], row["high"]) == pytest.approx(
        proportion_confint(round(n * accuracy), n, method="wilson")
    )
