"""The discrepancy ledger: its lines, verdicts and numbers, against the reference's list and hand computations."""

import pandas as pd
import pytest

from cnslib.core.settings.analyses import Published
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.published import ledger
from cnslib.studies.published.findings import UNSAID, Finding

SETTINGS = Published(bootstrap=Bootstrap(100, 0.95, 1, "same classes"), starts=50, images=20, seed=1)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return ledger.build(SETTINGS).set_index("id")


def test_every_disagreement_of_the_code_has_a_line():
    """The eighteen of the reference's list, numbered as there."""
    assert {str(number) for number in range(1, 19)} <= set(ledger.prose()["item"])


def test_known_disagreements_are_found(table):
    known = [
        "validation",
        "steps",
        "vote",
        "rce_dinov1",
        "rce_deit3",
        "row_dinov1",
        "failure_shares",
        "generation_hours",
        "partial_correlation",
    ]
    known += ["slerp", "latent_norm", "variance_divisor", "variance_mean", "zero_mean"]
    assert (table.loc[known, "verdict"] != "agrees").all()


def test_known_agreements_are_found(table):
    assert set(table.index[table["verdict"] == "agrees"]) >= {
        "rce_others",
        "training_hours",
        "image_count",
        "weather",
        "tables_agree",
    }


def test_a_line_of_which_the_paper_states_nothing_neither_agrees_nor_differs(table):
    assert set(table.index[table["verdict"] == "not stated"]) == {"averages", "reference_error", "guidance", "undocumented"}
    assert not table["paper"][table["verdict"] != "not stated"].str.contains(r"not (?:stated|said|defined)").any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vote", "6 of 16"),  # four over two
        ("rce_dinov1", "0.676"),
        ("row_dinov1", "0.78"),  # 6 * 0.87 - (0.91 + 0.91 + 0.90 + 0.88 + 0.84)
        ("scale_name", "0.15"),
        ("generation_hours", "233 to 467"),  # 1400 runs of 10 to 20 minutes
        ("label_images", "20,000"),  # 20 seeds, 5 scales, 2 shifts, 100 classes
        ("label_people", "2,737"),
        ("fine_tuning", "2.04 points"),
        ("partial_correlation", "+0.69"),
        ("latent_norm", "55.4"),  # the root of 3072
        ("image_total", "212,578"),  # 13 * 15,410 + 12,248
        ("drop_rates", "blur background to color g"),  # 89.92 - 78.64
    ],
)
def test_our_value_is_the_one_computed_by_hand(table, name, value):
    assert value in table.loc[name, "ours"]


def test_the_same_prose_fits_other_numbers():
    """No line's verdict is typed: a finding that agrees silences reason and effect."""
    assert ledger.verdict(Finding("1", "1", False, False)) == "agrees"
    assert [ledger.verdict(Finding("1", "2", True, holds)) for holds in (None, True, False)] == list(ledger.VERDICTS[2:])
    assert {ledger.verdict(Finding(UNSAID, "2", differs, holds)) for differs in (True, False) for holds in (None, True)} == {UNSAID}


def test_a_line_without_function_or_facts_is_named(monkeypatch):
    line = ledger.prose().iloc[[0]].assign(id="nobody", paper_fact="", code_fact="")
    monkeypatch.setattr(ledger, "prose", lambda: line)
    with pytest.raises(ValueError, match="nobody"):
        ledger.build(SETTINGS)


def test_overview_counts_every_line(table):
    assert ledger.overview(table.reset_index()).to_numpy().sum() == len(table) == len(ledger.prose())
