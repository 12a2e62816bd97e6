"""Findings about CNS-Bench's own tables: a line agrees where the tables do."""

import pytest

from cnslib.core import paths
from cnslib.core.settings.analyses import Published
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.published import findings, ledger

SETTINGS = Published(bootstrap=Bootstrap(100, 0.95, 1, "same classes"), starts=50, images=20, seed=1)


def test_what_is_too_low_stands_in_the_order_of_the_pairs_beside_it():
    found = findings.validation(SETTINGS)
    printed, known = ([float(part.split()[0]) for part in text.split(" and ")] for text in (found.paper, found.ours))
    gaps = [found.numbers["first"], found.numbers["second"]]
    assert gaps == pytest.approx([known[0] - printed[0], known[1] - printed[1]], abs=0.11) and gaps[0] < gaps[1]


@pytest.mark.parametrize(
    ("below", "words"), [(0, "None of 50 roundings reaches"), (1, "1 of 50 roundings reaches"), (2, "2 of 50 roundings reach")]
)
def test_how_many_roundings_reach_the_printed_correlation_is_counted(monkeypatch, below, words):
    table = findings.rounding.correlations(starts=50, confidence=0.95, seed=1).assign(below=below)
    monkeypatch.setattr(findings.rounding, "correlations", lambda **_: table)
    found = findings.partial_correlation(SETTINGS)
    line = ledger.prose().set_index("id").loc["partial_correlation"]
    assert f"{words} the printed value." in line["reason"].format(**found.numbers)
    assert "With one value for each of 5 models" in line["effect"].format(**found.numbers)
    assert "with the number of parameters itself the drop gives -0.04" in line["reason"].format(**found.numbers)


def test_agreeing_tables_make_an_agreeing_line(tmp_path, monkeypatch):
    for path in paths.PUBLISHED.glob("*.csv"):
        (tmp_path / path.name).write_text(
            path.read_text().replace("DINOv1-IN1k,dinov1_ft_vit_base_patch16,0.636", "DINOv1-IN1k,dinov1_ft_vit_base_patch16,0.676")
        )
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    assert not findings.rce_dinov1(SETTINGS).differs
