"""The published tables and what follows from them: hand computations, identities, and the tables of the paper themselves."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.data import published
from cnslib.studies.published import derived, releases, rounding

RESNET18 = "resnet18.a1_in1k"


@pytest.mark.parametrize("name", published.TABLES)
def test_every_table_is_complete_and_names_its_source(name):
    rows = published.read(name)
    assert len(rows) and rows["source"].str.len().min() > 0


def test_tables_have_as_many_rows_as_the_paper_prints():
    printed = {"cns_table3": 15, "cns_table4": 43, "cns_table5": 42 * 7, "cns_table7": 41, "cns_table8": 24, "cns_table10": 5}
    printed |= {"cns2024_table2": 40 * 7, "cns2024_table3": 40 * 6, "ximagenet12_table1": 15 * 8, "ximagenet12_table2": 10 * 8}
    assert {name: len(published.read(name)) for name in printed} == printed


def test_every_published_file_of_a_paper_is_a_known_table():
    files = {path.stem for path in paths.PUBLISHED.glob("*.csv") if path.stem.startswith(("cns", "control_shift", "ximagenet12", "timm"))}
    assert files <= published.TABLES.keys()


def test_tables_agree_with_the_selections_that_other_notebooks_read():
    accuracy = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
    ratios = pd.read_csv(paths.PUBLISHED / "corruption_error.csv").set_index("model")
    validation = pd.read_csv(paths.PUBLISHED / "validation.csv").set_index("model")["accuracy"]
    pd.testing.assert_frame_equal(published.by_scale("cns_table5").sort_index(), accuracy.sort_index(), check_names=False)
    assert ratios[["ce", "rce"]].equals(published.read("cns_table4").set_index("model")[["ce", "rce"]].loc[ratios.index])
    own = published.read("cns_table7").set_index("model")["accuracy_percent"] / 100
    np.testing.assert_allclose(own[validation.index], validation)


def test_an_unknown_table_and_a_broken_row_are_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"cns_table99.*cns_table2a"):
        published.read("cns_table99")
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cns_table4\.csv"):
        published.read("cns_table4")
    (tmp_path / "cns_table4.csv").write_text("model,ce,rce,source,note\nalexnet,1,1,Table 4,\nalexnet,1,1,Table 4,\n")
    with pytest.raises(ValueError, match=r"cns_table4\.csv.*\n.*"):
        published.read("cns_table4")


def test_averages_of_resnet18_are_those_counted_by_hand():
    row = derived.recomputed().loc[RESNET18]
    assert row["accuracy_recomputed"] == pytest.approx((0.90 + 0.90 + 0.88 + 0.85 + 0.80 + 0.72) / 6)
    assert row["drop_recomputed"] == pytest.approx((0 + 0 + 0.02 + 0.05 + 0.10 + 0.18) / 6)


def test_only_the_row_of_the_fine_tuned_dinov1_contradicts_itself():
    table = derived.consistency("cns_table5")
    assert list(table.index[~table["consistent"]]) == ["dinov1_ft_vit_base_patch16"]
    assert table.loc["dinov1_ft_vit_base_patch16", "drop"] == pytest.approx(0.91 - 0.84 - 0.04)


def test_table_3_and_4_disagree_in_two_lines():
    table = derived.axis_table().set_index("label")
    apart = table[table["rce_3"] != table["rce_4"]]
    assert apart[["rce_3", "rce_4"]].to_numpy().tolist() == [[0.582, 0.583], [0.636, 0.676]]


def test_failing_share_of_resnet18_is_error_over_share():
    row = derived.failures().loc[RESNET18]
    assert row["failing"] == pytest.approx(0.10 / 0.16) and row["late"] == pytest.approx(0.625 * 0.34)
    assert row["recovered"] == pytest.approx(1 - (0.28 - 0.2125) / (0.625 - 0.2125))


def test_votes_are_bounded_by_the_worst_and_the_best_joint_distribution():
    """With 0.9 each, misses add up to 0.4: three misses at once in 0.4/3 of all cases, two in 0.4/2."""
    least, independent, most = derived.vote_rates(0.9, detectors=4, fires=2)
    assert (least, most) == (pytest.approx(1 - 0.4 / 3), pytest.approx(1))
    assert independent == pytest.approx(1 - 0.1**4 - 4 * 0.9 * 0.1**3)
    assert derived.vote_rates(0.9, detectors=4, fires=3)[0] == pytest.approx(0.8)


def test_prevalence_solves_the_equation_of_accuracy():
    share, tpr, fpr = 0.2, 0.9, 0.3
    assert derived.prevalence(tpr, fpr, share * tpr + (1 - share) * (1 - fpr)) == pytest.approx(share)


def test_wilson_interval_is_that_of_its_formula():
    z, n, p = 1.959963984540054, 300, 0.01
    centre, half = (p + z * z / 2 / n) / (1 + z * z / n), z * np.sqrt(p * (1 - p) / n + (z / 2 / n) ** 2) / (1 + z * z / n)
    assert published.binomial(3, 300, confidence=0.95) == pytest.approx((0.01, centre - half, centre + half))


def test_partial_correlation_is_that_of_the_three_pairwise_ones():
    table = rounding.family()
    ood, own, size = (
        table[[0.5, 1.0, 1.5, 2.0, 2.5]].mean(axis=1).to_numpy(),
        table["id_accuracy"].to_numpy(),
        table["parameters"].to_numpy(),
    )
    r = np.corrcoef([np.log(size), ood, own])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert rounding.partial(size, ood, own)[0] == pytest.approx(expected)
    assert rounding.correlation(np.concatenate([size, ood, own])) == pytest.approx(expected)


def test_drawn_tables_round_to_the_printed_row():
    model = rounding.family().index[0]
    drawn = rounding.draws(model, 50, np.random.default_rng(0))
    accuracies, others = rounding.printed(model)
    np.testing.assert_allclose(np.abs(drawn - accuracies).max(), 0, atol=0.005)
    assert np.abs(drawn @ rounding.combinations().T - others).max() <= 0.005 + 1e-8
    low, high = rounding.bounds(model, [2.5])
    assert low <= drawn[:, -1].min() and drawn[:, -1].max() <= high and high - low <= 0.01 + 1e-8


def test_rounding_of_the_partial_correlation_nests():
    row = rounding.correlations(starts=100, confidence=0.9, seed=1).iloc[0]
    assert -1 <= row["least"] <= row["low"] < row["high"] <= row["most"] <= 1
    assert row["estimate"] == pytest.approx(0.687, abs=1e-3) and row["low"] > float(published.facts("cns_text")["partial_correlation"])


def test_printed_slerp_ends_at_the_target_and_the_exchanged_one_at_the_latent():
    printed, exchanged = (releases.extended(np.pi / 2, size=64, images=5, seed=1, printed=way) for way in (True, False))
    assert printed["target"].max() < 1e-3 and exchanged["z"].max() < 1e-3 and printed["z"].min() > 30


def test_printed_scores_follow_from_the_printed_cells_over_seven():
    table = releases.sibling_scores()
    np.testing.assert_allclose(table["cells"], table["printed"], atol=2e-4)
    by_hand = 1 - (1.17 + 0.18 + 0.50 + 0.68 + 0.10 + 0.38 + 53.04 + 7.12 + 0.10 + 0.11 + 0.17 + 0.20 + 6.96 + 0.30) / 700
    assert table.loc["ResNet50", "cells"] == pytest.approx(by_hand)


def test_swins_two_cells_are_squared_accuracies():
    table = releases.implied_means().set_index(["model", "trained_on"])
    assert table.loc[("Swin", "same scenario"), "zero"] == "blur_object, segmented_image"
    assert (table.drop(index=("Swin", "same scenario"))["zero"] == "").all()
    assert {round(0.7502**2, 4), round(0.8064**2, 4)} == {0.5628, 0.6503}
    assert releases.sibling_scores().loc["Swin", "row_mean"] == pytest.approx(0.803, abs=1e-3)
