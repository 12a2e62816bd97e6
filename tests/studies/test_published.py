import numpy as np
import pandas as pd
import pytest

from cnslib.core import paths
from cnslib.data import published
from cnslib.studies.scenarios import claims as derived

RESNET18 = "resnet18.a1_in1k"
TEXT, CODE = (published.read(name).set_index("id")["value"] for name in ("cns_text", "released_code"))
LEDGER, PAGE = pd.read_csv(paths.PUBLISHED / "ledger.csv", keep_default_na=False), paths.ROOT / "docs" / "ledger.md"


def prevalence(tpr: float, fpr: float, accuracy: float) -> float:
    """The share of positives at which a detector with these rates has this accuracy (Table 2b)."""
    return (accuracy - (1 - fpr)) / (tpr - (1 - fpr))


def filter_prevalence() -> str:
    rates = published.read("cns2024_filter").set_index("filter").loc["CLIP", ["tpr", "fpr", "accuracy"]].to_numpy(float)
    nearby = [prevalence(*(rates + sign * 0.0005 * np.array(step))) for sign in (1, -1) for step in np.ndindex(2, 2, 2)]
    return f"{prevalence(*rates):.1%} ({min(nearby):.1%} to {max(nearby):.1%} by rounding)"


def variance_mean() -> str:
    lower = derived.implied_means().unstack().diff(axis=1, periods=-1).iloc[:, 0]
    return f"the inner mean is lower by {lower.min():.2f} to {lower.max():.2f} in {int((lower > 0.01).sum())} of {len(lower)} models"


def failure_shares() -> str:
    shares = published.read("cns2024_table3").query("model == @RESNET18").set_index("scale")["share"]
    error = 1 - published.by_scale("cns2024_table2").loc[RESNET18]
    failing = error[0.0] / shares[0.0]
    late = failing * shares.iloc[-1]
    recovered = 1 - (error.iloc[-1] - late) / (failing - late)
    return f"{failing:.2f} fail somewhere, so {recovered:.0%} of the earlier failures recover"


def reference_error() -> str:
    """AlexNet's summed error if CE were a ratio of pooled sums: one number for all models would mean that the definition fits."""
    error, found = 1 - published.by_scale("cns_table5"), []
    for title, table in {"six scales": error, "five scales": error.drop(columns=0.0)}.items():
        implied = table.sum(axis=1) / published.read("cns_table4").set_index("model")["ce"]
        found.append(f"{implied.mean():.2f} (spread {implied.std() / implied.mean():.1%}) over {title}")
    return "AlexNet's summed error " + " or ".join(found)


def partial_correlation() -> str:
    """Of size and accuracy of the five DeiT3 models, given ImageNet accuracy, from the three pairwise correlations."""
    parameters = published.read("cns_table7_parameters").set_index("architecture")["parameters_millions"]
    known = published.read("cns_table7").set_index("model")["accuracy_percent"]
    sizes = [f"deit3_{size}" for size in ("small", "medium", "base", "large", "huge")]
    names = [next(name for name in known.index if name.startswith(size)) for size in sizes]
    ood = published.by_scale("cns_table5").loc[names].drop(columns=0.0).mean(axis=1)
    r = np.corrcoef([np.log2(parameters[sizes]), ood, known[names]])
    return f"{(r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2)):+.2f}; 95% of roundings"


def defined_scores() -> str:
    table = derived.printed_scores().sort_values("printed", ascending=False)["as_defined"]
    return ", ".join(f"{model} {value:.3f}" for model, value in table.items())


def steps() -> str:
    """The share of DDIM steps (leading spacing) at which the released code's adapter acts."""
    total, offset, start = (int(CODE[name]) for name in ("training_timesteps", "steps_offset", "start_noise"))
    shares = [(np.arange(int(facts["steps"])) * (total // int(facts["steps"])) + offset <= start).mean() for facts in (TEXT, CODE)]
    return "the slider acts in {:.0%} and {:.0%} of the steps".format(*shares)


def averages() -> str:
    """How far the printed average drops of Table 5 lie from means over all six scales, and over the five above 0."""
    accuracy, rows = published.by_scale("cns_table5"), published.read("cns_table5")
    printed = rows[rows["scale"].isna()].set_index("model")["drop"]
    drop = accuracy[[0.0]].to_numpy() - accuracy
    return "mean difference {:.4f} over six scales, {:.4f} over five".format(
        *((table.mean(axis=1) - printed).abs().mean() for table in (drop, drop.drop(columns=0.0)))
    )


LINES = {
    "steps": steps,
    "averages": averages,
    "failure_shares": failure_shares,
    "reference_error": reference_error,
    "partial_correlation": partial_correlation,
    "filter_prevalence": filter_prevalence,
    "variance_mean": variance_mean,
    "zero_mean": lambda: f"{derived.printed_scores().loc['Swin', 'row_mean']:.4f} with the row's own mean in blur object, segmented image",
    "defined_scores": defined_scores,
}


@pytest.mark.parametrize("line", LINES)
def test_our_value_in_the_ledger_follows_from_the_tables(line):
    assert LEDGER.set_index("id").loc[line, "ours"].startswith(LINES[line]())


def page(text: str) -> str:
    """docs/ledger.md: its text up to the first table, and a table for each document."""
    columns = ["subject", "paper", "code", "ours", "verdict", "reason", "effect", "source"]
    parts = [text.split("## ")[0].rstrip()]
    for document, rows in LEDGER.groupby("document", sort=False):
        lines = [columns, ["---"] * len(columns), *rows[columns].astype(str).to_numpy()]
        parts.append(f"## {document}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


def test_the_page_shows_the_ledger_and_its_counts():
    text, verdicts = PAGE.read_text(), LEDGER["verdict"].value_counts()
    differ = verdicts.filter(like="differs").sum()
    assert text == page(text)
    assert (
        f"Of {verdicts.sum()} comparisons {verdicts['agrees']} agree and {differ} differ; in {verdicts['differs, the claim falls']}" in text
    )


def test_printed_scores_follow_from_the_printed_cells_over_seven():
    table = derived.printed_scores()
    np.testing.assert_allclose(table["cells"], table["printed"], atol=2e-4)
    by_hand = 1 - (1.17 + 0.18 + 0.50 + 0.68 + 0.10 + 0.38 + 53.04 + 7.12 + 0.10 + 0.11 + 0.17 + 0.20 + 6.96 + 0.30) / 700
    assert table.loc["ResNet50", "cells"] == pytest.approx(by_hand)
