"""What corruptions tell beside shifts: the orders of the classifiers, with the control that no corruption enters, and sentences on them.

A benchmark of corrupted real pictures differs from one of shifted generated pictures in two ways. The control has only one of them:
real pictures without a corruption against generated ones without a shift.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8

from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import Bootstrap
from cnslib.plots.captions.words import interval
from cnslib.stats import accuracy, bootstrap, ranking, verdicts
from cnslib.stats.accuracy import ALL, MEAN, Shares
from cnslib.studies.corruptions.levels import CONTRAST, KINDS, Levels, Pictures, corrupt

BOTH, CONTROL, LOST = (
    "sliders and corruptions",
    "generated and real, neither shifted nor corrupted",
    "sliders and corruptions, accuracy lost",
)
REAL, GENERATED = "originals and corruptions", "unshifted and sliders"
RULE = "whole interval below that of the control"
COUNTED = accuracy.RULE.replace("shifts", "corruptions").replace("trajectories", "pictures").replace("scales", "severities")


def agreements(sliders: Shares, corrupted: Shares, clean: Shares) -> dict[str, dict]:
    """Kendall's tau-b of pairs of orders of the same classifiers as records; `clean` are errors on uncorrupted held-out pictures."""
    whole = {
        BOTH: ranking.rank_agreement(sliders, corrupted),
        CONTROL: ranking.unshifted_agreement(sliders, clean),
        LOST: ranking.loss_agreement(sliders, corrupted),
        REAL: ranking.originals_agreement(corrupted),
        GENERATED: ranking.originals_agreement(sliders),
    }
    return whole | {f"sliders and {name}": ranking.rank_agreement(sliders, corrupted, shift=name) for name in corrupted.groups[:-1]}


def stand_in(tau: dict[str, dict]) -> pd.DataFrame:
    """Whether corruptions order the classifiers otherwise than shifts do, beyond what the pictures themselves do (supplement E).

    Held by RULE, contradicted where the interval lies above the control's. `smallest` is by how much tau would have to be smaller.
    """
    ours, control = tau[BOTH], tau[CONTROL]
    verdict = verdicts.word(ours["high"] < control["low"], ours["low"] > control["high"])
    short = ours["high"] - control["low"] if verdict == verdicts.UNDECIDED else float("nan")
    row = {"claim": "corruptions are no stand-in for shifts", **ours, "control": control["estimate"], "rule": RULE}
    return pd.DataFrame([row | {"verdict": verdict, "smallest": short}]).set_index("claim").rename(columns={"estimate": "ours"})


def conclusion(tau: dict[str, dict]) -> str:
    """What the control makes of the disagreement, in two sentences."""
    said = f"Corruptions of real pictures and sliders order the classifiers with a Kendall's tau of {interval(tau[BOTH])}; "
    said += f"real and generated pictures to which nothing was done, of {interval(tau[CONTROL])}. "
    return (
        said
        + {
            verdicts.UNDECIDED: "The two taus cannot be told apart, so it is not shown that corruptions are no stand-in for shifts: "
            "real and generated pictures by themselves may part the orders as far",
            verdicts.SAME: "Corruptions part the orders further than real and generated pictures do by themselves",
            verdicts.OPPOSITE: "Corruptions bring the orders nearer than real and generated pictures are by themselves",
        }[stand_in(tau)["verdict"].iloc[0]]
    )


def moral(tau: dict[str, dict]) -> str:
    """Whether those that lose little to corruptions lose little to sliders, when the accuracy at the start no longer counts."""
    word = verdicts.word(tau[LOST]["low"] > 0, tau[LOST]["high"] < 0)
    said = {
        verdicts.SAME: "who loses little to the one tends to lose little to the other",
        verdicts.OPPOSITE: "who loses little to the one tends to lose much to the other",
        verdicts.UNDECIDED: "whether who loses little to the one loses little to the other stays open",
    }
    return f"By accuracy lost, which leaves the start out, {said[word]}: tau is {interval(tau[LOST])}"


def strips(plain: Pictures, rows: pd.DataFrame, graded: Levels) -> UInt8[np.ndarray, "corruptions severities side side 3"]:
    """The first picture as it is and at every severity, a row per corruption; `rows` say its class and seed."""
    keys = list(rows[["class", "seed"]].head(1).itertuples(index=False, name=None))
    levels = [[plain[0], *(corrupt(name, plain[:1], own, keys=keys)[0] for own in row.values())] for name, row in graded.items()]
    return np.array(levels)


def strip_words(shown: UInt8[np.ndarray, "corruptions severities side side 3"], names: list[str]) -> str:
    """Which corruption changes the picture most and least at the last severity, in grey levels."""
    away = pd.Series(np.abs(shown[:, -1].astype(int) - shown[:, 0]).mean((1, 2, 3)), names)
    most, least = (f"{name} ({away[name]:.0f} grey levels)" for name in (away.idxmax(), away.idxmin()))
    return f"At the last severity {most} changes this picture most and {least} least"


def contrast_rows(predictions: pd.DataFrame) -> pd.DataFrame:
    """The answers under contrast and to the originals."""
    return predictions[predictions["shift"].isin([CONTRAST, UNSHIFTED])]


def shares(tables_of: list[pd.DataFrame], *, settings: Bootstrap) -> list[Shares]:
    """The errors in some tables of answers with their resamples."""
    return [accuracy.error_shares(accuracy.outcomes(table), settings=settings) for table in tables_of]


def contrast_tables(errors: Shares) -> pd.DataFrame:
    """Drops and ranks by level of contrast; the column measure tells which."""
    both = {"drop": accuracy.accuracy_drop(errors), "rank": ranking.ranks(errors)}
    table = pd.concat(both, names=["measure"]).reset_index("measure")
    return table[table["shift"] == CONTRAST]


def fading(errors: Shares) -> pd.DataFrame:
    """Kendall's tau between the order at the start and at each level of contrast (n, estimate, low, high), by level."""
    table = ranking.agreement(errors)
    return table[table["shift"] == CONTRAST].set_index("scale")[["n", "estimate", "low", "high"]]


def at_start(errors: Shares) -> float:
    """Mean accuracy of the classifiers on the pictures as they are."""
    return float(1 - errors.samples[0, -1, :, 0].mean())


def at_end(errors: Shares) -> dict[str, dict]:
    """Mean accuracy of the classifiers at the last severity as records, by corruption and over all."""
    mean = accuracy.mean_accuracy(errors)
    return bootstrap.records(mean[mean["scale"] == errors.bins[-1]], "shift")


def hardest(drops: pd.DataFrame) -> str:
    """Under which corruption most and least accuracy is lost at the last severity, mean over the classifiers (as `accuracy_drop`)."""
    last = drops[(drops["scale"] == drops["scale"].max()) & (drops["shift"] != ALL)]
    lost = last.groupby("shift")["estimate"].mean()
    most, least = (f"{name} ({lost[name]:.2f} of accuracy)" for name in (lost.idxmax(), lost.idxmin()))
    return f"At severity {drops['scale'].max():g} most is lost under {most} and least under {least}, mean over the classifiers"


def by_kind(drops: pd.DataFrame) -> pd.DataFrame:
    """Accuracy lost at each severity, mean over classifiers and corruptions of a kind; kinds in the order of the paper."""
    owner = {name: kind for kind, names in KINDS.items() for name in names}
    rows = drops[drops["shift"] != ALL].assign(kind=drops["shift"].map(owner))
    return rows.pivot_table(index="kind", columns="scale", values="estimate").loc[list(KINDS)]


def contrast_words(fading: pd.DataFrame) -> str:
    """How much of the order at the start is left at the last level; `fading` is tau with the start by level."""
    last = fading.iloc[-1]
    return f"At the last level of contrast the order of the classifiers has a tau of {interval(last)} with that on the originals"


def extremes(means: dict[str, pd.DataFrame], left_out: dict[str, list[str]]) -> str:
    """The best and the worst classifier by CE, and over how many corruptions each mean runs; both as `mean_ratios` gives them."""
    found = means["CE"]["estimate"]
    best = f"By CE {found.idxmin()} is best ({found.min():.2f}) and {found.idxmax()} worst ({found.max():.2f})"
    used = {name: int(table["shifts"].iloc[0]) for name, table in means.items()}
    each = [f"{name} averages {count} of {count + len(left_out[name])} corruptions" for name, count in used.items()]
    return f"{best}. {', '.join(each)}"


def movers(changes: pd.DataFrame, *, confidence: float) -> str:
    """How many classifiers stand elsewhere for certain under corruptions than under sliders, who moves most, and what luck would give.

    `confidence` is that of the intervals, which stand alone.
    """
    certain = changes[(changes["low"] > 0) | (changes["high"] < 0)]
    stand = "stands" if len(certain) == 1 else "stand"
    first = f"{len(certain)} of {len(changes)} classifiers surely {stand} at another place under corruptions than under sliders"
    luck = f"of {len(changes)} intervals that stand alone, {len(changes) * (1 - confidence):.1f} would leave out zero by luck"
    if certain.empty:
        return f"{first}; {luck}"
    most = certain.loc[certain["estimate"].abs().idxmax()]
    return f"{first}, most of all {most['model']} ({most['estimate']:+.0f} places); {luck}"


def mean_ratios(errors: Shares, *, reference: str) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame], dict[str, list[str]]]:
    """CE and rCE: whole tables, their means over the corruptions by classifier, and which corruptions are left out."""
    measures = {"CE": ranking.corruption_error, "rCE": accuracy.relative_corruption_error}
    ratios = {name: measure(errors, reference=reference) for name, measure in measures.items()}
    means = {name: table[table["shift"] == MEAN].set_index("model") for name, table in ratios.items()}
    left_out = {name: sorted(set(table.loc[~table["defined"], "shift"]) - {MEAN}) for name, table in ratios.items()}
    return ratios, means, left_out


def order_claims(errors: Shares, by_contrast: Shares, photographs: Shares) -> pd.DataFrame:
    """Whether the order of the classifiers changes from corruption to corruption and from level to level (supplement D, Figs. 16, 17).

    Held where a pair of classifiers surely changes its order (`ranking.reversals`); pairs that do not are no proof of the contrary.
    `by_contrast` has no other corruption.
    """
    places = {
        "from corruption to corruption": (by_corruption(errors), errors.models),
        "from level to level of contrast": (by_contrast.samples[:, 0].swapaxes(1, 2), errors.models),
        "from corruption to corruption, photographs": (by_corruption(photographs), photographs.models),
    }
    found = {name: ranking.reversals(values, models)["p_holm"] for name, (values, models) in places.items()}
    alpha = 1 - errors.confidence
    counts = {name: {"pairs": len(p), "surely turned": int((p < alpha).sum())} for name, p in found.items()}
    table = pd.DataFrame(counts).T.rename_axis("the order changes").assign(rule=f"a pair with p below {alpha:.2g}, Holm")
    return table.assign(verdict=[verdicts.word(count > 0, False) for count in table["surely turned"]])


def by_corruption(errors: Shares) -> Float[np.ndarray, "resamples+1 corruptions models"]:
    """Mean errors over the severities."""
    return errors.samples[:, :-1, :, 1:].mean(-1)


def photo_rows(errors: Shares) -> pd.DataFrame:
    """Mean accuracy of the classifiers on the photographs at the last severity, per corruption."""
    mean = accuracy.mean_accuracy(errors)
    return mean[(mean["scale"] == errors.bins[-1]) & (mean["shift"] != ALL)]


def photo_words(errors: Shares) -> str:
    """Hardest and mildest corruption of photographs, and the accuracy without any."""
    rows = photo_rows(errors).set_index("shift")["estimate"]
    worst, mildest = (f"{rows[name]:.0%} under {name}" for name in (rows.idxmin(), rows.idxmax()))
    return f"ImageNet classifiers name {at_start(errors):.0%} of the photographs right, and at the last severity {worst} and {mildest}"


def beside_shifts(corrupted: Shares, shifted: Shares) -> pd.DataFrame:
    """Accuracy lost on the same photographs, averaged over severities, and mean over corruptions or rendered shifts, per classifier.

    Here the pictures without a shift are the same ones. The last column is the place, 1 for who loses least.
    """
    parts = {}
    for name, errors in {"corruptions": corrupted, "rendered shifts": shifted}.items():
        lost = (errors.samples[..., 1:] - errors.samples[..., :1]).mean(-1)[:, :-1].mean(1)
        parts[name] = pd.DataFrame({"model": errors.models, **bootstrap.estimates(lost, errors.n[-1], errors.confidence)})
    table = pd.concat(parts, names=["benchmark"]).reset_index("benchmark")
    return table.assign(place=table.groupby("benchmark")["estimate"].rank().astype(int)).reset_index(drop=True)


def same_objects(rows: pd.DataFrame, corrupted: pd.DataFrame) -> pd.DataFrame:
    """The answers to rendered shifts on those objects that were corrupted, too."""
    keys = corrupted.loc[corrupted["shift"] == UNSHIFTED, ["class", "seed"]].drop_duplicates()
    return rows.astype({"shift": str}).merge(keys, on=["class", "seed"])
