"""The published tables and what follows from them: hand computations, identities, and the tables of the paper themselves."""

import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.data import published


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


def test_wilson_interval_is_that_of_its_formula():
    z, n, p = 1.959963984540054, 300, 0.01
    centre, half = (p + z * z / 2 / n) / (1 + z * z / n), z * np.sqrt(p * (1 - p) / n + (z / 2 / n) ** 2) / (1 + z * z / n)
    assert published.binomial(3, 300, confidence=0.95) == pytest.approx((0.01, centre - half, centre + half))
