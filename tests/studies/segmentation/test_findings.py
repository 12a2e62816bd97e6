"""What notebook 41 says: each sentence follows its numbers."""

import pandas as pd
import pytest

from cnslib.studies.segmentation import findings


def shares(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["scenario", "estimate", "low", "high"])


EXCESS = shares(("a", 0.1, 0.05, 0.2), ("b", 0.02, -0.01, 0.05), ("c", -0.2, -0.3, -0.1))
CHANGES = shares(("random background", -0.05, -0.08, -0.02), ("segmented", 0.01, -0.02, 0.04), ("grey", 0.5, 0.4, 0.6))


def test_maps_count_the_pictures_in_which_a_network_finds_the_garment(garment):
    rows = [("FPN", 0.0, 0.9), ("FPN", 1.0, 0.4), ("PSPNet", 0.0, 0.5), ("PSPNet", 1.0, 0.6), ("PSPNet", 0.5, 0.9)]
    table = pd.DataFrame(rows, columns=["model", "scale", "iou"]).assign(**{"class": garment.label, "seed": garment.seed})
    other = table.assign(seed=garment.seed + 1, iou=1.0)
    said = findings.maps(pd.concat([table, other]), garment, 0.5)
    assert said == "Of 2 pictures of one trouser, found with an IoU of 0.5: PSPNet 2, FPN 1"


def test_survival_names_both_ends_with_their_mean_over_the_networks():
    last = pd.DataFrame({"FPN": [0.1, 0.6], "PSPNet": [0.3, 0.4]}, index=["segmented", "grey"])
    said = findings.survival(["segmented", "grey"], last)
    assert said == "Fewest masks survive 'segmented' (mean mIoU 0.20), most 'grey' (mean mIoU 0.50)"


def test_the_luck_of_trainings_stands_beside_the_distance_of_the_networks():
    """FPN's trainings are 0.2 apart, PSPNet's 0.1; the means of the two are 0.4 and 0.65."""
    rows = [("FPN", 1, 0.3), ("FPN", 2, 0.5), ("PSPNet", 1, 0.6), ("PSPNet", 2, 0.7)]
    said = findings.luck(pd.DataFrame(rows, columns=["model", "training", "estimate"]).assign(n=48))
    assert said.startswith(
        "The trainings of one network lie up to 0.200 apart (FPN), the means of the networks up to 0.250; n = 48 images, 2"
    )


def test_a_network_is_said_to_be_worse_or_better_by_its_whole_interval():
    rows = [("scenario", "grey", -0.1, -0.2, -0.05), ("network", "FPN", -0.02, -0.05, 0.01), ("network", "PSPNet", -0.09, -0.15, -0.03)]
    table = pd.DataFrame(rows, columns=["of", "name", "ours", "low", "high"]).assign(n=48, trainings=3)
    said = findings.networks(table)
    assert "other trainings: FPN -0.020 (-0.050 to +0.010), not told apart; PSPNet -0.090 (-0.150 to -0.030), surely worse; n = 48" in said
    assert said.endswith("n = 48 images, 3 trainings of each network.")
    assert "FPN -0.020 (+0.001 to +0.100), surely better" in findings.networks(table.assign(low=0.001, high=0.1))
    assert findings.networks(table[table["of"] == "scenario"]) == "DeepLabV3Plus stands alone."


def test_who_looks_at_the_garment_is_counted_by_whole_intervals_on_either_side():
    said = findings.looking(EXCESS, CHANGES)
    assert said.startswith("1 of 3 classifiers surely look at the garment more than chance would, 1 surely less; the share on it changes")
    assert said.endswith("changes -0.05 (-0.08 to -0.02) by a random background and +0.01 (-0.02 to +0.04) by none at all")


@pytest.mark.parametrize(
    ("other", "black", "words"),
    [
        ((-0.08, -0.02), (-0.02, 0.04), ("draws looks away from it", "is not shown to give any back")),
        ((-0.08, 0.02), (0.01, 0.04), ("is not shown to draw looks away", "gives them back")),
        ((0.02, 0.04), (-0.04, -0.01), ("draws looks to it", "takes more away")),
    ],
)
def test_backgrounds_are_said_to_draw_looks_by_whole_intervals(other, black, words):
    rows = [(name, sum(ends) / 2, *ends) for name, ends in zip(findings.BACKGROUNDS, (other, black), strict=True)]
    said = findings.moved(shares(*rows))
    assert all(word in said for word in words) and "other changed backgrounds" not in said


def test_other_backgrounds_that_draw_looks_to_the_garment_are_counted_beside_the_random_one():
    """Red and green draw looks to it, the drawn background away, grey neither; what changes the object does not count."""
    others = [("red", 0.02, 0.01, 0.03), ("green", 0.02, 0.01, 0.03), ("grey", 0.0, -0.1, 0.1), ("drawn background", -0.05, -0.06, -0.04)]
    changes = pd.concat([CHANGES[:2], shares(*others, ("bright object", -0.04, -0.05, -0.03))])
    said = findings.moved(changes)
    assert said.startswith("a random background draws looks away from it (-0.05 (-0.08 to -0.02) of the share on it), a black one")
    assert said.endswith("; of 4 other changed backgrounds 2 surely draw looks to it, 1 surely away")


def test_attributions_are_told_from_least_to_most_beside_the_area():
    rows = pd.DataFrame({"share": [0.25, 0.5, 0.3], "area": 0.33})
    assert findings.attributions(rows) == "Between 25% and 50% of the attribution lies on the garment, which covers 33%"
    table = shares(("original", 0.5, 0.4, 0.6), ("original", 0.3, 0.2, 0.4), ("grey", 0.9, 0.9, 0.9))
    said = findings.photographs(table.assign(method=["Grad-CAM", "gradient", "gradient"]), {"estimate": 0.2, "low": 0.1, "high": 0.3})
    parts = "50% (40% to 60%) of the Grad-CAM and 30% (20% to 40%) of the gradient"
    assert said == f"On unchanged photographs {parts} lies on the object, which covers 20% (10% to 30%)"


@pytest.mark.parametrize(
    ("low", "high", "verdict", "words"),
    [
        (-0.9, -0.1, "same direction", "Classifiers that look more at the garment certainly lose less"),
        (-0.9, 0.1, "undecided", "Whether classifiers that look more at the garment lose less is undecided"),
        (0.1, 0.9, "opposite direction", "Classifiers that look more at the garment certainly lose more"),
    ],
)
def test_the_claim_about_robust_models_is_decided_by_the_interval(low, high, verdict, words):
    rho = {"n": 5, "estimate": (low + high) / 2, "low": low, "high": high}
    assert findings.claim(rho)["verdict"].tolist() == [verdict] and findings.correlation(rho).startswith(words)
    rows = [("scenario", "grey", 0.1, 0.0, 0.2), ("scenario", "segmented", -0.5, -0.6, -0.4), ("network", "FPN", -0.9, -1.0, -0.8)]
    coefficients = pd.DataFrame(rows, columns=["of", "name", "ours", "low", "high"]).assign(n=48, trainings=9)
    said = findings.answer(coefficients, 0.6, EXCESS, CHANGES, rho)
    assert said.startswith(
        "Yes, where outlines are asked for: 'segmented' changes the networks' garment IoU of 0.60 by -0.50 (-0.60 to -0.40), n = 48 "
        "images, 9 trainings. 1"
    )
    assert f"{words} (rank correlation" in said and said.endswith("n = 5).")
    assert findings.answer(coefficients.assign(high=0.1), 0.6, EXCESS, CHANGES, rho).startswith("Not shown where outlines")
