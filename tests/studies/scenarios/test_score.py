import itertools

import numpy as np
import pandas as pd
import pytest
from tiny_scenarios import found

from cnslib.studies.scenarios import claims
from cnslib.studies.scenarios.experiments import TRAINED


def test_the_score_by_hand():
    """Deviations 0.1 and 0.3 give 0.1 / 2 = 0.05; deviations 0 and 0.2 give 0.04 / 2 = 0.02; 1 - 0.07. With n - 1: 1 - 0.14."""
    cross, inner = np.array([0.8, 0.6]), np.array([0.9, 0.7])
    assert claims.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=0) == pytest.approx(0.93)
    assert claims.score(cross, inner, mean_cross=0.9, mean_inner=0.9, ddof=1) == pytest.approx(0.86)
    assert claims.score(cross, inner, mean_cross=0.9, mean_inner=0.8, ddof=1) == pytest.approx(1 - 0.1 - 0.02)


def test_accuracies_and_drops_are_shares_of_objects():
    own = dict.fromkeys(TRAINED, 0.5) | {"unshifted": 1.0}
    table = found({"a": own, "b": own | {"grey": 0.25}})
    assert table["n"] == 20 and table["model"].to_numpy().tolist() == ["a", "b"]
    grey = table.sel(scenario="grey")
    assert np.allclose(grey[0], [0.5, 0.25]) and np.allclose((claims.originals(table) - grey)[0], [0.5, 0.75])
    low, high = np.percentile(grey[1:, 0], [2.5, 97.5])
    assert low < 0.5 < high
    costs = claims.losses(table, ["grey", "red"])
    assert costs["scenario"].tolist() == ["grey", "red"] and costs["estimate"].tolist() == pytest.approx([0.625, 0.5])


# R's data set warpbreaks: breaks of yarn by wool (A, B) and tension (L, M, H), nine looms each.
BREAKS = [
    *(26, 30, 54, 25, 70, 52, 51, 26, 67, 18, 21, 29, 17, 12, 18, 35, 30, 36, 36, 21, 24, 18, 10, 43, 28, 15, 26),
    *(27, 14, 29, 19, 29, 31, 41, 20, 44, 42, 26, 19, 16, 39, 28, 21, 39, 29, 20, 21, 24, 17, 13, 15, 15, 16, 28),
]


def test_coefficients_are_those_of_r_and_errors_the_sandwich_over_clusters():
    """Liang and Zeger with the factor G / (G - 1) (N - 1) / (N - K), as Stata's and R's vcovCL with type HC1."""
    tension = pd.Categorical(np.tile(np.repeat(["L", "M", "H"], 9), 2), ["L", "M", "H"])
    table = pd.DataFrame({"breaks": np.array(BREAKS, float), "wool": np.repeat(["A", "B"], 27), "tension": tension})
    table["object"] = np.arange(54) % 9
    fitted = claims.regression(table, "breaks ~ wool + tension", confidence=0.95)
    printed = {"Intercept": 39.278, "wool[B]": -5.778, "tension[M]": -10.0, "tension[H]": -14.722}  # summary(lm(...)) in R
    assert fitted.set_index("variable")["estimate"].round(3).to_dict() == printed
    design = np.column_stack([np.ones(54), table["wool"] == "B", table["tension"] == "M", table["tension"] == "H"]).astype(float)
    bread = np.linalg.inv(design.T @ design)
    coefficient = bread @ design.T @ table["breaks"].to_numpy()
    scores = design * (table["breaks"].to_numpy() - design @ coefficient)[:, None]
    sums = np.stack([scores[table["object"] == loom].sum(0) for loom in range(9)])
    errors = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * 9 / 8 * 53 / 50)
    assert np.allclose(fitted["estimate"], coefficient) and set(fitted["n"]) == {9}
    assert np.allclose(fitted["high"] - fitted["estimate"], 2.306004 * errors)  # qt(0.975, 8)


def test_cases_are_predictions_at_full_severity_with_the_references_first():
    keys = itertools.product("ab", (("unshifted", 0.0), ("grey", 0.5), ("grey", 1.0)), ("bag", "coat"), (0, 1))
    rows = pd.DataFrame([(m, *s, c, n) for m, s, c, n in keys], columns=["model", "shift", "scale", "class", "seed"])
    rows["top1"] = rows["class"].mask((rows["model"] == "b") & (rows["shift"] == "grey"), "shoe")
    table = claims.cases(rows, ["grey"], reference="b")
    assert len(table) == 16 and table["object"].nunique() == 4 and table["right"].sum() == 12
    assert list(table["model"].cat.categories) == ["b", "a"] and list(table["scenario"].cat.categories) == ["unshifted", "grey"]
    fitted = claims.regression(table, claims.FORMULA, confidence=0.95).set_index("variable")["estimate"]
    assert fitted.drop("label[coat]").round(9).to_dict() == {"Intercept": 0.75, "model[a]": 0.5, "scenario[grey]": -0.5}


def test_the_claims_come_out_as_the_predictions_were_made():
    """A sum costs 0.2 and 0.8, segmented 0.4 of one, the rest nothing; EX2 loses nothing; the more accurate model is less stable."""
    steady = dict.fromkeys(TRAINED, 0.7) | {"summed background": 0.5}
    shaky = dict.fromkeys(TRAINED, 1.0) | {"summed background": 0.2, "segmented": 0.6}
    ex1, ex2 = found({"steady": steady, "shaky": shaky}), found({name: dict.fromkeys(TRAINED, 0.9) for name in ("steady", "shaky")})
    table = claims.against_paper(ex1, ex2, ex1)
    first, inner, tau = table.iloc[1], table.iloc[3], table.iloc[6]
    assert first["ours"] == pytest.approx(0.5 - 0.2) and first["verdict"] == "agrees" and "(segmented)" in first["quantity"]
    assert inner["ours"] == pytest.approx(0) and inner["verdict"] == "agrees"
    assert tau["ours"] == pytest.approx(-1) and table["verdict"].iloc[6:8].tolist() == ["opposite direction", "same direction"]
    assert table.iloc[-1]["ours"] == pytest.approx(0.9 - 0.85) and table.iloc[-1]["verdict"] == "not measured"  # nobody learned on sums
    assert table["claim"].value_counts().to_dict() == {f"conclusion {n}": k for n, k in ((1, 2), (2, 2), (3, 4))} | {"section 5.2": 1}
    # On the paper's own originals one of ten pairs of models is out of order, Swin and ViT: (9 - 1) / 10. With ImageNet's most are.
    assert table["published"].iloc[6] == pytest.approx(0.8) and table["published"].iloc[7] < 0
