"""Published lines: an exact line, scipy on the same numbers, and another computation of the partial correlation."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from tiny_lines import catalog, scattered, shares

from cnslib.stats import line, printed_lines

ID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.9])


def published(**columns) -> pd.DataFrame:
    return pd.DataFrame(
        {"accuracy": ID, "parameters_millions": 2.0 ** np.arange(6)} | {float(name): values for name, values in columns.items()}
    )


def test_an_exact_published_line_has_its_slope_and_r_of_1():
    table = printed_lines.fits(published(**{"0": 0.5 * ID + 0.1, "1": 2 * ID}), confidence=0.95)
    assert table["estimate"].tolist() == pytest.approx([0.5, 2]) and table["r"].tolist() == pytest.approx([1, 1])
    assert (table["models_high"] - table["models_low"]).max() < 1e-6


def test_published_slopes_and_their_intervals_are_scipys():
    ood = 0.3 * ID + 0.1 * np.cos(9 * ID)
    row = printed_lines.fits(published(**{"0.5": ood}), confidence=0.9).loc[0.5]
    other = scipy.stats.linregress(ID, ood)
    half = scipy.stats.t.ppf(0.95, 4) * other.stderr
    assert row[["estimate", "models_low", "models_high", "r"]].tolist() == pytest.approx(
        [other.slope, other.slope - half, other.slope + half, other.rvalue]
    )


def test_both_sides_have_the_same_rows_in_the_same_order():
    theirs = printed_lines.fits(published(**{"0": 0.5 * ID, "0.5": ID, "9": ID}), confidence=0.95)
    found = scattered(3)
    ours = printed_lines.pooled(found, None, published(**{"0": ID, "0.5": ID, "9": ID}))
    own, beside = printed_lines.sides(ours, theirs)
    assert own.index.equals(beside.index) and own.index.tolist() == [("slope", 0), ("slope", 0.5), ("R", 0), ("R", 0.5)]
    assert own.index.names == beside.index.names == ["quantity", "scale"] and theirs.index.name == "scale"
    assert own["n"].tolist() == [8] * 4 and beside.loc["slope", "published"].tolist() == pytest.approx([0.5, 1])
    assert own.loc["R", "ours"].tolist() == line.slopes(found).query("shift == 'all shifts'")["r"].tolist()[:2]


def test_claims_about_lines_are_our_records_beside_the_papers():
    found = {"linear": line.points(shares(np.stack([0.7 * ID, 0.8 * ID, ID - 0.1], 1)), catalog(ID))}
    own = published(**{"0": 0.5 * ID, "0.5": ID, "1": ID})
    sides = printed_lines.pooled(found["linear"], None, own), printed_lines.fits(own, confidence=0.95)
    table = printed_lines.claims(found, *sides, supervised=None, played={"convnext": "a", "deit": "b"}).set_index("claim")
    assert table.loc["growth of the slope, linear axes", "estimate"] == pytest.approx(0.3)
    assert table.loc["lines that rise with p below 0.05", "estimate"] == 1 and table.iloc[0]["published"] == 1
    assert table.loc["gain of ConvNeXt minus that of DeiT", "estimate"] == pytest.approx(0, abs=1e-9)
    assert table["published"].tolist()[1:] == ["above 0.5", "above 0", "above 0"]
    assert table["source"].tolist() == ["Fig. 22; Tables 5, 7", "Fig. 21", "Fig. 23 (graffiti style alone)", "Fig. 24"]
    assert len(printed_lines.claims(found, *sides, supervised=None, played={"convnext": "absent"})) == len(table) - 1


def test_the_claim_about_r_is_our_record_at_the_last_scale_beside_scipys_rounded_to_three_places():
    bent = ID + 0.1 * np.cos(9 * ID)
    own, found = published(**{"0": 0.5 * ID, "0.5": ID, "1": bent}), {"linear": scattered(3)}
    ours = printed_lines.pooled(found["linear"], None, own)
    first = printed_lines.claims(found, ours, printed_lines.fits(own, confidence=0.95), supervised=None, played={}).iloc[0]
    assert first["claim"] == "R at scale 1, other classifiers"
    assert first["published"] == round(scipy.stats.linregress(ID, bent).rvalue, 3) not in (1, -1)
    assert first[printed_lines.NUMBERS].tolist() == ours.loc[1.0, ["models", "r", "r_low", "r_high"]].tolist()


def test_claims_about_size_have_a_row_per_family():
    table = pd.DataFrame({"family": ["vit"], "n": [5], "estimate": [0.1], "low": [0.0], "high": [0.2]})
    listed = printed_lines.size_claims(pd.concat([table, table.assign(family="resnet")]))
    assert listed["claim"].tolist() == ["partial correlation, vit", "partial correlation, resnet"]
    assert listed["published"].tolist() == [-0.358, -0.358]
    none = printed_lines.size_claims(table.head(0))
    assert list(none) == list(listed) == ["claim", "source", "published", *printed_lines.NUMBERS] and none.empty
