"""The tables of the README and docs/: numbers of a small repository counted by hand, and the committed pages."""

import json

import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.tools.pages import front

CLAIMS = """id,claim,rule,n,estimate,low,high,verdict,smallest
f,not under all,exists,9,0.1,-0.001,0.3,undecided,0.2
a,shifts hurt,above 0,9,0.5,0.4,0.6,agrees,
b,snow hurts most,above 0,9,0.5,0.4,0.6,same direction,
c,size helps,above 0,9,-0.5,-0.6,-0.4,opposite direction,
d,data helps,above 0,9,0.1,0.01,0.2,undecided,0.1
diffusion_worse,noise helps,,0,,,,not measured,
g,accurate without a shift,above 0,9,0.5,0.4,0.6,agrees,
"""
LISTED = """id,claim,measure
a,shifts hurt,rCE
b,snow hurts most,rCE
c,size helps,average drop
d,data helps,average drop
f,not under all,rCE
diffusion_worse,noise helps,none
g,accurate without a shift,held-out error
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Seven claims, one of them about accuracy without a shift, one metric, three gates, and a page with a table."""
    estimates = {"rising_mean": 0.9, "claims_decided": 0.4, "kept_start_in_class": 1.0}
    gates = {key: {"n": 9, "estimate": value, "low": 0.3, "high": None} for key, value in estimates.items()}
    world = {"classifier_accuracy": {"vit": {"n": 2000, "estimate": 0.8, "low": 0.75, "high": 0.8501}}}
    files = {
        "published/claims.csv": LISTED,
        "figures/axes/claims.csv": CLAIMS,
        "metrics/world.json": json.dumps(world),
        "metrics/gates.json": json.dumps(gates),
        "README.md": "Before.\n\n<!-- filled: verdict -->\nstale\n<!-- end -->\n\nAfter.\n",
        "docs/a.md": "No table.\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def test_claims_without_a_shift_do_not_count_and_the_others_add_up(root):
    assert front.verdict().splitlines()[-1] == "| 6 | 2 | 1 | 2 | 1 |"


def test_every_claim_stands_under_what_became_of_it_in_the_papers_order(root):
    assert front.claims().splitlines()[4:] == [
        "| hold | shifts hurt | 0.50 (0.40 to 0.60) |  |",
        "| hold | snow hurts most | 0.50 (0.40 to 0.60) |  |",
        "| point the other way | size helps | -0.50 (-0.60 to -0.40) |  |",
        "| stay open | data helps | 0.10 (0.01 to 0.20) | 0.10, but Holm asks more |",
        "| stay open | not under all | 0.10 (0.00 to 0.30) | 0.20 |",
        "| cannot be measured here | noise helps | [27 denoiser](../notebooks/27_denoiser.ipynb) asks it about few pictures |  |",
    ]


def test_what_is_found_is_said_in_two_sentences_one_about_the_others_and_one_about_the_gates(root):
    first, last = "**Claims that hold:** shifts hurt; snow hurts most.", "**Claims that point the other way:** size helps."
    others = "The others stay open (1 through Holm's correction alone) or cannot be measured here."
    unsafe = "1 of 2 [gates](docs/glossary.md#gate) is missed: no verdict is safe."
    assert front.findings() == f"{first}\n\n{last}\n{others} {unsafe}"


def test_the_gates_that_are_missed_stand_in_words_above_the_claims(root):
    missed = "1 of 2 [gates](glossary.md#gate) is missed: measurable claims of section 5.3 with a verdict (0.40, at least 0.5)"
    assert front.claims().splitlines()[:2] == [f"{missed}. By our rule the verdicts below are not safe.", ""]
    found = json.loads((root / "metrics" / "gates.json").read_text())
    (root / "metrics" / "gates.json").write_text(json.dumps({"rising_mean": found["rising_mean"]}))
    assert front.safety() == "None of 1 [gates](glossary.md#gate) is missed."
    assert front.findings().endswith("cannot be measured here. None of 1 [gates](docs/glossary.md#gate) is missed.")


def test_others_are_told_only_where_there_are_some(root):
    table = front.listed()
    assert front.others(table[table["verdict"] == "not measured"]) == "The others cannot be measured here."
    assert front.others(table[table["id"] == "f"]) == "The others stay open."
    assert front.others(table[table["verdict"] == "agrees"]) == "There are no others."


@pytest.mark.parametrize(("rule", "left"), [("above 0", True), ("exists", True), ("below 0", True), ("below margin", False), ("", False)])
def test_holm_alone_keeps_a_claim_open_whose_interval_decides(root, rule, left):
    row = front.listed().query("id == 'd'").assign(rule=rule)
    assert front.left_open_by_holm(next(row.itertuples())) is left
    assert not front.left_open_by_holm(next(row.assign(low=-0.1).itertuples()))


def test_a_record_is_shown_with_its_interval_and_n(root):
    assert front.classifiers().splitlines()[-1] == "| `vit` | 0.800 (0.750 to 0.850) | 2,000 |"


def test_a_missing_number_is_named_with_those_that_exist(root):
    with pytest.raises(ValueError, match=r"metrics/world\.json: 'oracle' is not accepted; accepted: classifier_accuracy"):
        front.record("world", "oracle")


def test_an_unknown_table_is_refused(root):
    with pytest.raises(ValueError, match=r"filled: 'verdicts' is not accepted; accepted: verdict, claims, findings, numbers"):
        front.filled("<!-- filled: verdicts -->\n<!-- end -->")


def test_a_page_that_is_behind_is_named_and_then_filled_once(root, capsys):
    assert front.main(["--check"]) == 1 and "stale" in (root / "README.md").read_text()
    assert front.main([]) == 0 and front.main(["--check"]) == 0
    text = (root / "README.md").read_text()
    assert text.startswith("Before.") and text.endswith("After.\n") and "| 6 | 2 | 1 | 2 | 1 |" in text and "stale" not in text
    assert capsys.readouterr().err.splitlines() == ["behind: README.md", "filled: README.md"]


def test_the_text_of_every_claim_stands_alone():
    """A claim is listed under what became of it, not behind the claim before it."""
    listed = pd.read_csv(paths.PUBLISHED / "claims.csv")["claim"]
    assert listed.is_unique and not listed.str.contains("...", regex=False).any()
    assert not listed.str.match(r"(?:and|but|although|perhaps|more so)\b").any()


def test_the_committed_pages_tell_the_committed_results():
    assert [path.name for path in front.pages() if front.filled(path.read_text()) != path.read_text()] == []
