"""Averages, drops, orders, votes and intervals that follow from the published tables, against counts by hand."""

import pytest

from cnslib.studies.published import derived

RESNET18 = "resnet18.a1_in1k"


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
