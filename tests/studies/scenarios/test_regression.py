"""Coefficients as R prints them for its own data sets, and clustered errors as a sandwich computed by hand."""

import numpy as np
import pandas as pd
import pytest

from cnslib.studies.scenarios import regression

# R's data set warpbreaks: breaks of yarn by wool (A, B) and tension (L, M, H), nine looms each.
BREAKS = [
    *(26, 30, 54, 25, 70, 52, 51, 26, 67, 18, 21, 29, 17, 12, 18, 35, 30, 36, 36, 21, 24, 18, 10, 43, 28, 15, 26),
    *(27, 14, 29, 19, 29, 31, 41, 20, 44, 42, 26, 19, 16, 39, 28, 21, 39, 29, 20, 21, 24, 17, 13, 15, 15, 16, 28),
]
# lme4's data set Dyestuff: yield of dye from five preparations of each of six batches.
YIELD = [
    *(1545, 1440, 1440, 1520, 1580, 1540, 1555, 1490, 1560, 1495, 1595, 1550, 1605, 1510, 1560),
    *(1445, 1440, 1595, 1465, 1545, 1595, 1630, 1515, 1635, 1625, 1520, 1455, 1450, 1480, 1445),
]


@pytest.fixture
def warpbreaks():
    tension = pd.Categorical(np.tile(np.repeat(["L", "M", "H"], 9), 2), ["L", "M", "H"])
    return pd.DataFrame({"breaks": np.array(BREAKS, float), "wool": np.repeat(["A", "B"], 27), "tension": tension})


def test_the_linear_model_is_that_of_r(warpbreaks):
    """summary(lm(breaks ~ wool + tension, warpbreaks)) in R."""
    found = regression.linear(warpbreaks, "breaks ~ wool + tension", groups=None, confidence=0.95).set_index("variable")
    assert found["estimate"].round(3).to_dict() == {"Intercept": 39.278, "wool[B]": -5.778, "tension[M]": -10.0, "tension[H]": -14.722}
    assert found.loc["wool[B]", "p"] == pytest.approx(0.0736, abs=5e-5)
    assert found.loc["tension[M]", "p"] == pytest.approx(0.0128, abs=5e-5)
    assert found.loc["tension[H]", "p"] == pytest.approx(0.000391, abs=5e-7)
    assert (found.loc["wool[B]", "high"] + 5.778) / 2.0086 == pytest.approx(3.162, abs=1e-3)  # qt(0.975, 50) standard errors


def test_the_mixed_model_is_that_of_r():
    """lmer(Yield ~ 1 + (1 | Batch), Dyestuff) in R: 1527.5 (19.38), variances 1764 and 2451."""
    table = pd.DataFrame({"yield_": np.array(YIELD, float), "batch": np.repeat(list("ABCDEF"), 5)})
    found, variances = regression.mixed(table, "yield_ ~ 1", groups="batch", confidence=0.95)
    (row,) = found.to_dict("records")
    assert row["estimate"] == pytest.approx(1527.5) and row["n"] == 6
    assert (row["high"] - row["estimate"]) / 1.959964 == pytest.approx(19.38, abs=0.02)
    assert variances["group"] == pytest.approx(1764, rel=0.002) and variances["residual"] == pytest.approx(2451, rel=0.001)


def test_the_fit_of_a_set_holds_both_regressions_with_the_same_coefficients():
    """Ten objects, of which the first two are always wrong; grey costs the second model three more."""
    rows = [
        (model, name, "bag", seed, scale, "coat" if seed < 2 or ((model, name) == ("b", "grey") and seed < 5) else "bag")
        for model in ("a", "b")
        for name, scale in (("unshifted", 0.0), ("grey", 1.0), ("red", 1.0))
        for seed in range(10)
    ]
    replies = pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])
    found = regression.fit(replies, ["grey", "red"], regression.WITHOUT_LABEL, confidence=0.95)
    table = regression.of_scenarios({"garments": found})
    wide = table.pivot(index="scenario", columns="regression", values="estimate")
    assert wide["clustered"].to_dict() == pytest.approx({"grey": -0.15, "red": 0.0}, abs=1e-9)
    assert np.allclose(wide["clustered"], wide["mixed"]) and 0.5 < found.share < 1
    assert regression.side_by_side(found).loc["model[b]", ("clustered", "estimate")] == pytest.approx(-0.1)


def test_clustered_errors_are_the_sandwich_over_clusters(warpbreaks):
    """Liang and Zeger with the factor G / (G - 1) (N - 1) / (N - K), as Stata's and R's vcovCL with type HC1."""
    table = warpbreaks.assign(loom=np.arange(54) % 9)
    found = regression.linear(table, "breaks ~ wool + tension", groups="loom", confidence=0.95)
    design = np.column_stack([np.ones(54), table["wool"] == "B", table["tension"] == "M", table["tension"] == "H"]).astype(float)
    bread = np.linalg.inv(design.T @ design)
    coefficient = bread @ design.T @ table["breaks"].to_numpy()
    scores = design * (table["breaks"].to_numpy() - design @ coefficient)[:, None]
    sums = np.stack([scores[table["loom"] == loom].sum(0) for loom in range(9)])
    errors = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * 9 / 8 * 53 / 50)
    assert np.allclose(found["estimate"], coefficient) and set(found["n"]) == {9}
    assert np.allclose(found["high"] - found["estimate"], 2.306004 * errors)  # qt(0.975, 8)


def test_the_papers_random_background_is_the_sum_of_its_code():
    """Table 3 prints -0.7078 for it; ours beside it is the coefficient of the sum, whatever clean composites cost."""
    variables = [f"scenario[{name}]" for name in (*regression.VARIABLES, "random background")]
    table = pd.DataFrame({"variable": variables, "n": 20, "estimate": -0.1, "low": -0.2, "high": -0.05})
    table.loc[table["variable"] == "scenario[summed background]", "estimate"] = -0.15
    found = regression.against_table3({"garments": table}).set_index("scenario")
    assert found.loc["summed background", ["ours", "published"]].tolist() == [-0.15, -0.7078] and "random background" not in found.index


@pytest.fixture
def replies():
    """Two models, two scenarios, two classes of two objects: b misses everything under grey, a nothing."""
    keys = [
        (m, s, c, n, float(s != "unshifted")) for m in "ab" for s in ("unshifted", "grey", "red") for c in ("bag", "coat") for n in (0, 1)
    ]
    table = pd.DataFrame(keys, columns=["model", "shift", "class", "seed", "scale"])
    missed = (table["model"] == "b") & (table["shift"] == "grey")
    return table.assign(top1=table["class"].mask(missed, "shoe"))


def test_cases_are_answers_at_full_severity_with_the_references_first(replies):
    half = replies[replies["shift"] == "grey"].assign(scale=0.5)
    table = regression.cases(pd.concat([replies, half]), ["grey"], reference="b")
    assert len(table) == 16 and table["object"].nunique() == 4 and table["right"].sum() == 12
    assert list(table["model"].cat.categories) == ["b", "a"] and list(table["scenario"].cat.categories) == ["unshifted", "grey"]
    found = regression.linear(table, regression.FORMULA, groups="object", confidence=0.95).set_index("variable")["estimate"]
    assert found.drop("label[coat]").round(9).to_dict() == {"Intercept": 0.75, "model[a]": 0.5, "scenario[grey]": -0.5}
