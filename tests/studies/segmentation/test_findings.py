"""What notebook 41 says: each sentence follows its numbers."""

import pandas as pd
import pytest

from cnslib.studies.segmentation import findings


def shares(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["scenario", "estimate", "low", "high"])


AREA = pd.Series({"estimate": 0.33, "low": 0.3, "high": 0.35})


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


def test_who_looks_at_the_garment_is_counted_by_whole_intervals():
    plain = shares(("a", 0.4, 0.36, 0.5), ("b", 0.4, 0.34, 0.5), ("c", 0.2, 0.1, 0.3))
    overall = shares(("original", 0.9, 0.8, 1.0), ("segmented", 0.45, 0.4, 0.5), ("grey", 0.3, 0.2, 0.4))
    assert findings.certainly_more(plain, AREA) == 1
    said = findings.looking(plain, overall, AREA)
    assert said.startswith("1 of 3 classifiers certainly") and said.endswith("under 'segmented', 0.45 (0.40 to 0.50)")


def test_attributions_are_told_from_least_to_most_beside_the_area():
    rows = pd.DataFrame({"share": [0.25, 0.5, 0.3], "area": 0.33})
    assert findings.attributions(rows) == "Between 25% and 50% of the attribution lies on the garment, which covers 33%"
    table = shares(("original", 0.5, 0.4, 0.6), ("original", 0.3, 0.2, 0.4), ("grey", 0.9, 0.9, 0.9))
    said = findings.photographs(table.assign(method=["Grad-CAM", "gradient", "gradient"]), {"estimate": 0.2})
    assert said == "On unchanged photographs 50% of the Grad-CAM and 30% of the gradient lies on the object, which covers 20%"


@pytest.mark.parametrize(
    ("low", "high", "verdict", "words"),
    [
        (-0.9, -0.1, "same direction", "Who looks at the garment more certainly loses less"),
        (-0.9, 0.1, "undecided", "Whether who looks at the garment more loses less is undecided"),
        (0.1, 0.9, "opposite direction", "Who looks at the garment more certainly loses more"),
    ],
)
def test_the_claim_about_robust_models_is_decided_by_the_interval(low, high, verdict, words):
    rho = {"n": 5, "estimate": (low + high) / 2, "low": low, "high": high}
    assert findings.claim(rho)["verdict"].tolist() == [verdict] and findings.correlation(rho).startswith(words)
    ends = pd.DataFrame({"iou": [0.5, 0.1, 0.2]}, index=["grey", "segmented", "random background"])
    said = findings.answer(ends, 0.6, shares(("a", 0.4, 0.36, 0.5)), AREA, rho)
    assert said.startswith("The mean IoU falls from 0.60 furthest under 'segmented' (0.10) and 'random background' (0.20); 1 of 1")
    assert words[1:] in said
