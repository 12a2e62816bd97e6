"""What the published tables imply, and what their rounding allows: errors, correlations, scores, latents. Behind docs/ledger.md.

A printed number stands for all numbers that round to it, so comparisons allow half a digit for every number they use.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core import paths
from cnslib.data import published
from cnslib.studies.controlshift import latents

HALF = 0.005  # half of the last digit of Table 5
HALF_ID = 0.0005  # half of the last digit of Table 7, which prints one decimal of a percent and a zero
HALF_MILLION = 0.5  # Table 7 prints whole millions of parameters
ROUNDED = 0.5e-4  # half of the last digit of a percentage with two decimals
SLACK = 1e-9  # what binary fractions may add
SCALES = published.SCALES
REGIMES = ("original images", "same scenario")
PAGE = paths.ROOT / "docs" / "ledger.md"


def ledger() -> pd.DataFrame:
    """The discrepancy ledger, a row a line: paper, released code, our value, verdict, reason and effect."""
    return pd.read_csv(paths.PUBLISHED / "ledger.csv", keep_default_na=False)


def page(head: str) -> str:
    """docs/ledger.md: its text up to the first table, and a table for each document."""
    columns = ["subject", "paper", "code", "ours", "verdict", "reason", "effect", "source"]
    parts = [head.split("## ")[0].rstrip()]
    for document, rows in ledger().groupby("document", sort=False):
        lines = [columns, ["---"] * len(columns), *rows[columns].astype(str).to_numpy()]
        parts.append(f"## {document}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


# CNS-Bench, Tables 3 to 5


def implied_reference() -> pd.DataFrame:
    """AlexNet's summed error if CE and rCE were ratios of pooled sums: mean over the models, and spread relative to it.

    One number for all models would mean that the definition fits. CE is tried with and without scale 0.
    """
    error, ratios = 1 - published.by_scale("cns_table5"), published.read("cns_table4").set_index("model")
    above = error.drop(columns=0.0)
    sums = {"CE, six scales": error.sum(axis=1), "CE, five scales": above.sum(axis=1), "rCE": above.sub(error[0.0], axis=0).sum(axis=1)}
    implied = pd.DataFrame({title: values / ratios["rce" if title == "rCE" else "ce"] for title, values in sums.items()})
    return pd.DataFrame({"mean": implied.mean(), "spread": implied.std() / implied.mean()})


def failures() -> pd.DataFrame:
    """Shares of first failures (earlier Table 3) beside errors (earlier Table 2): trajectories that fail, and that must recover.

    `failing` is the error at scale 0 over the share of failures at scale 0, `late` the trajectories that first fail at the last scale,
    `recovered` the share of earlier failures that must be right again there for the printed error to hold.
    """
    shares = published.read("cns2024_table3").pivot(index="model", columns="scale", values="share")
    error = 1 - published.by_scale("cns2024_table2").reindex(shares.index)
    first, last = SCALES[0], SCALES[-1]
    failing = error[first] / shares[first]
    late = failing * shares[last]
    return pd.DataFrame({"failing": failing, "late": late, "recovered": 1 - (error[last] - late) / (failing - late)})


def family() -> pd.DataFrame:
    """The five DeiT3 models by size: parameters in millions, ImageNet accuracy in [0, 1], accuracy per scale of Table 5."""
    architectures = [f"deit3_{size}" for size in ("small", "medium", "base", "large", "huge")]
    size = published.read("cns_table7_parameters").set_index("architecture")["parameters_millions"]
    validation = published.read("cns_table7").set_index("model")["accuracy_percent"] / 100
    names = [next(name for name in validation.index if name.startswith(architecture)) for architecture in architectures]
    shifted = published.by_scale("cns_table5").loc[names]
    return shifted.assign(parameters=size[architectures].to_numpy(), id_accuracy=validation[names].to_numpy())


def draws(model: str, count: int, generator: np.random.Generator) -> Float[np.ndarray, "count scales"]:
    """Accuracies per scale drawn evenly, by rejection, from those that round to everything Table 5 prints of a model.

    Beside the accuracies it prints both averages and the drops at scales 1 to 2.5.
    """
    mean, at = np.full(len(SCALES), 1 / len(SCALES)), np.eye(len(SCALES))
    weights = np.array([mean, at[0] - mean, *(at[0] - scale for scale in at[2:])])
    averages, drops = published.averages("cns_table5").loc[model], published.by_scale("cns_table5", "drop").loc[model]
    printed = np.array([averages["accuracy"], averages["drop"], *drops[list(SCALES[2:])]])
    accuracies, drawn = published.by_scale("cns_table5").loc[model].to_numpy(), np.empty((0, len(SCALES)))
    while len(drawn) < count:
        tried = accuracies + generator.uniform(-HALF, HALF, (20 * count, len(SCALES)))
        drawn = np.concatenate([drawn, tried[(np.abs(tried @ weights.T - printed) <= HALF + SLACK).all(axis=1)]])
    return drawn[:count]


def partial_correlation(size: np.ndarray, ood: np.ndarray, control: np.ndarray) -> Float[np.ndarray, "*tables"]:
    """Correlation of size and OOD accuracy over the last axis, given ID accuracy (supplement F), from residuals."""
    x, y, z = (values - values.mean(-1, keepdims=True) for values in (size, ood, control))
    x, y = (values - (values * z).sum(-1, keepdims=True) / (z * z).sum(-1, keepdims=True) * z for values in (x, y))
    return (x * y).sum(-1) / np.sqrt(np.maximum((x * x).sum(-1) * (y * y).sum(-1), 1e-30))


def size_correlations(*, starts: int = 5000, confidence: float = 0.95, seed: int = 1) -> pd.DataFrame:
    """Supplement F from Tables 5 and 7: partial correlation of size and accuracy (or drop), and quantiles over tables that round alike.

    A row for the mean accuracy above scale 0 and for the drop to it, each with the logarithm of the number of parameters and with the
    number itself. `below` counts the drawn tables at or below the printed value.
    """
    table, generator = family(), np.random.default_rng(seed)
    size, identity = table["parameters"].to_numpy(), table["id_accuracy"].to_numpy()
    cells = np.stack([draws(model, starts, generator) for model in table.index], axis=1)
    sizes, identities = (
        values + half * generator.uniform(-1, 1, (starts, len(values))) for values, half in ((size, HALF_MILLION), (identity, HALF_ID))
    )
    mean = np.r_[0, np.full(len(SCALES) - 1, 1 / (len(SCALES) - 1))]
    said, tail, rows = float(published.facts("cns_text")["partial_correlation"]), (1 - confidence) / 2, []
    for outcome, weights in {"accuracy": mean, "drop": np.eye(len(SCALES))[0] - mean}.items():
        for measure in ("log2", "number"):
            scaled = np.log2 if measure == "log2" else np.asarray
            estimate = partial_correlation(scaled(size), table[list(SCALES)].to_numpy() @ weights, identity)
            drawn = partial_correlation(scaled(sizes), cells @ weights, identities)
            low, high = np.quantile(drawn, [tail, 1 - tail])
            rows.append((outcome, measure, len(table), float(estimate), low, high, int((drawn <= said).sum())))
    return pd.DataFrame(rows, columns=["outcome", "size", "n", "estimate", "low", "high", "below"]).set_index(["outcome", "size"])


# XIMAGENET-12, Tables 1 and 2


def rows(name: str, column: str) -> dict[tuple[str, str], np.ndarray]:
    """A table of XIMAGENET-12 as one vector per (model, trained on), over the eight scenarios, in [0, 1]."""
    return {
        key: part.set_index("scenario")[column].loc[list(published.SCENARIOS)].to_numpy() / 100
        for key, part in published.read(name).groupby(["model", "trained_on"])
    }


def fits(accuracy: np.ndarray, deviation: np.ndarray, mean: Float[np.ndarray, "means"]) -> np.ndarray:
    """Whether each printed squared deviation is that of the printed accuracy from each candidate mean, up to rounding."""
    away = np.abs(accuracy - mean[:, None])
    return np.abs(away**2 - deviation) <= ROUNDED * (1 + 2 * away) + SLACK


def implied_means() -> pd.DataFrame:
    """Per row of Table 2 the mean that most of its cells were measured from, the cells that took 0 instead, and the variance's divisor."""
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    scores, grid, records = published.read("ximagenet12_table2_scores").set_index("model"), np.linspace(0, 1, 10_001), []
    for (model, regime), cells in deviation.items():
        counts = fits(accuracy[model, regime], cells, grid).sum(1)
        zero = np.array(published.SCENARIOS)[fits(accuracy[model, regime], cells, np.zeros(1))[0]]
        variance = scores.loc[model, "variance_cross" if regime == REGIMES[0] else "variance_inner"]
        records.append((model, regime, grid[counts == counts.max()].mean(), ", ".join(zero), variance, cells.sum()))
    table = pd.DataFrame(records, columns=["model", "trained_on", "mean", "zero", "variance", "sum"])
    return table.assign(divisor=table["sum"] / table["variance"]).set_index(["model", "trained_on"])


def scores() -> pd.DataFrame:
    """XIMAGENET-12's robustness scores (Table 2), printed and recomputed from Table 1.

    `cells`: from the printed cells over n - 1. `row_mean`: each row's mean in all of its cells, over n - 1. `as_defined`: the mean of
    the cross row in both rows, over n, as Eqs. 1 to 3 say.
    """
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    means, n = implied_means()["mean"], len(published.SCENARIOS)
    table = published.read("ximagenet12_table2_scores").set_index("model")[["score"]].rename(columns={"score": "printed"})
    for model in table.index:
        by_row = sum(((accuracy[model, regime] - means[model, regime]) ** 2).sum() for regime in REGIMES)
        defined = sum(((accuracy[model, regime] - means[model, REGIMES[0]]) ** 2).sum() for regime in REGIMES)
        cells = sum(deviation[model, regime].sum() for regime in REGIMES)
        table.loc[model, ["cells", "row_mean", "as_defined"]] = 1 - cells / (n - 1), 1 - by_row / (n - 1), 1 - defined / n
    return table


# Control+Shift, Eqs. 6 and 7


def extended(theta: float, *, size: int, printed: bool, images: int = 500, seed: int = 1) -> pd.DataFrame:
    """Latents of the extend shift at an angle: per image the angle to z and to the target in degrees, and the norm.

    `printed` follows Eq. 7 to the letter; otherwise z and the target change places, as in the released code and in the text.
    """
    generator = np.random.default_rng(seed)
    z, target = generator.standard_normal((images, size)), generator.standard_normal(size)
    z, target = z / np.linalg.norm(z, axis=1, keepdims=True), np.broadcast_to(target / np.linalg.norm(target), z.shape)
    first, second = (z, target) if printed else (target, z)
    made = latents.slerp(first, second, (theta + np.pi / 2) / np.pi)
    norm = np.linalg.norm(made, axis=1)
    angles = {name: np.degrees(np.arccos(np.clip((made * other).sum(1) / norm, -1, 1))) for name, other in (("z", z), ("target", target))}
    return pd.DataFrame({**angles, "norm": norm})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
