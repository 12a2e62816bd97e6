"""Findings of the ledger about CNS-Bench itself: what its tables and text say of each other, one function per line.

Every function is named as the line in published/ledger.csv and takes the settings of the notebook.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import scipy.stats
from statsmodels.stats.proportion import proportions_ztest

from cnslib.core import paths
from cnslib.core.settings.analyses import Published
from cnslib.data import published
from cnslib.studies.published import derived, rounding

UNSAID = "not stated"  # on the paper's side, so that nothing agrees or differs
MISTREATED = ("vit_base_patch16_224.augreg_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k")


@dataclass(frozen=True)
class Finding:
    """One comparison: what is printed, what we compute, whether they differ, and whether the claim stands on our value.

    `holds` is None where no claim can be tested; `numbers` fill the line's prose.
    """

    paper: str
    ours: str
    differs: bool
    holds: bool | None = None
    numbers: Mapping[str, object] = field(default_factory=dict)


def validation(settings: Published) -> Finding:
    """Table 7 against timm's own accuracies at the same input size."""
    both = published.read("cns_table7").merge(published.read("timm_validation"), on="model", suffixes=("", "_timm")).set_index("model")
    gap = both["accuracy_percent"] - both["accuracy_percent_timm"]
    special, others = gap[list(MISTREATED)], gap.drop(list(MISTREATED)).abs()
    paper = " and ".join(f"{value:.1f} %" for value in both.loc[list(MISTREATED), "accuracy_percent"])
    ours = " and ".join(f"{value:.1f} %" for value in both.loc[list(MISTREATED), "accuracy_percent_timm"])
    first, second = -special
    numbers = {"first": first, "second": second, "most": others.max(), "models": len(others)}
    return Finding(paper, f"{ours} (timm)", bool(special.abs().min() > others.max()), None, numbers)


def missing_accuracies(settings: Published) -> Finding:
    """Models of Table 4 that Table 7 leaves out."""
    missing = sorted(set(published.read("cns_table4")["model"]) - set(published.read("cns_table7")["model"]))
    return Finding("all evaluated models", f"all but {', '.join(missing)}", bool(missing), None, {"missing": len(missing)})


def rce_of(label: str, claim: str) -> Finding:
    """A line of Table 3 against Table 4, and whether its place in the axis stays the same."""
    table = derived.axis_table().set_index("label")
    line = table.loc[label]
    best = table.loc[table["axis"] == line["axis"], "rce_4"].idxmin()
    holds = bool(line["rank_3"] == line["rank_4"])
    numbers = {"rank_3": line["rank_3"], "rank_4": line["rank_4"], "best": best, "claim": claim}
    return Finding(f"{line['rce_3']:.3f} (Table 3)", f"{line['rce_4']:.3f} (Table 4)", bool(line["rce_3"] != line["rce_4"]), holds, numbers)


def rce_dinov1(settings: Published) -> Finding:
    """DINOv1 of the pre-training axis."""
    return rce_of("DINOv1-IN1k", "best of the axis")


def rce_deit3(settings: Published) -> Finding:
    """DeiT3-H of the size axis."""
    return rce_of("DeiT3-H", "second of the axis")


def rce_others(settings: Published) -> Finding:
    """The other lines of Table 3."""
    table = derived.axis_table()
    apart = table.loc[table["rce_3"] != table["rce_4"], "label"]
    rest = table[~table["label"].isin(["DINOv1-IN1k", "DeiT3-H"])]
    wrong = int((rest["rce_3"] != rest["rce_4"]).sum())
    return Finding(f"{len(rest)} numbers", f"{len(rest) - wrong} of them in Table 4", wrong > 0, None, {"apart": len(apart)})


def row_dinov1(settings: Published) -> Finding:
    """The rows of Table 5 whose drops and averages are not those of their accuracies, and the accuracy that the average asks for."""
    table = derived.consistency("cns_table5")
    wrong = list(table.index[~table["consistent"]])
    model = "dinov1_ft_vit_base_patch16"
    accuracies, average = published.by_scale("cns_table5").loc[model], published.averages("cns_table5").loc[model, "accuracy"]
    last = len(accuracies) * average - accuracies.iloc[:-1].sum()
    drop = published.by_scale("cns_table5", "drop").loc[model].iloc[-1]
    paper = f"accuracy {accuracies.iloc[-1]:.2f}, drop {drop:.2f}, average {average:.2f}"
    ours = f"the average asks for {last:.2f} at scale 2.5, a drop of {accuracies.iloc[0] - last:.2f}"
    return Finding(paper, ours, wrong == [model], None, {"wrong": len(wrong), "models": len(table), "names": ", ".join(wrong)})


def averages(settings: Published) -> Finding:
    """Over which scales the average drop of Table 5 runs."""
    error = derived.averaging("cns_table5")["mean"]
    ours = f"mean difference {error['six scales']:.4f} over six scales, {error['five scales']:.4f} over five"
    return Finding(UNSAID, ours, bool(error["six scales"] > error["five scales"]), None, {})


def tables_agree(settings: Published) -> Finding:
    """Table 5 against Table 2 of the earlier supplement."""
    both = published.read("cns_table5").merge(published.read("cns2024_table2"), on=["model", "scale"], suffixes=("", "_old"))
    apart = [(both[name] != both[f"{name}_old"]) & both[name].notna() for name in ("accuracy", "drop")]
    wrong, models = int(sum(map(sum, apart))), both["model"].nunique()
    return Finding(f"{models} models in both", f"{wrong} numbers differ", wrong > 0)


def failure_shares(settings: Published) -> Finding:
    """Shares of first failures (earlier Table 3) against errors (earlier Table 2)."""
    table, code = derived.failures(), published.facts("released_code")
    failing, late, error = (float(code[f"resnet18_cartoon_{name}"]) for name in ("failing", "late", "error"))
    usual = 1 - (error - late) / (failing - late)
    one = table.loc["resnet18.a1_in1k"]
    paper = f"ResNet-18: {one['error_first']:.2f} wrong at scale 0, {one['error_last']:.2f} at 2.5"
    ours = f"{one['failing']:.2f} fail somewhere, so {one['recovered']:.0%} of the earlier failures recover"
    numbers = {
        "median": table["recovered"].median(),
        "usual": usual,
        "impossible": int((table["recovered"] > 1).sum()),
        "models": len(table),
    }
    return Finding(paper, ours, bool(table["recovered"].min() > usual), None, numbers)


def reference_error(settings: Published) -> Finding:
    """What CE may mean: AlexNet's pooled error with and without scale 0."""
    table = derived.implied_reference()
    texts = [f"{table.loc[name, 'mean']:.2f} (spread {table.loc[name, 'relative_spread']:.1%}) over {name[4:]}" for name in table.index[:2]]
    return Finding(UNSAID, f"AlexNet's summed error {' or '.join(texts)}", True, None, {"rce": table.loc["rCE", "relative_spread"]})


def partial_correlation(settings: Published) -> Finding:
    """Supplement F against Tables 5 and 7, with rounding."""
    lines = rounding.correlations(starts=settings.starts, confidence=settings.bootstrap.confidence, seed=settings.seed).set_index(
        "accuracy"
    )
    line, drop = lines.loc[rounding.MEAN], lines.loc[rounding.DROP]
    said, alpha = float(published.facts("cns_text")["partial_correlation"]), 1 - settings.bootstrap.confidence
    p = rounding.p_value(said, line["n"])
    usual, all_of_them = (f"{line[low]:+.2f} to {line[high]:+.2f}" for low, high in (("low", "high"), ("least", "most")))
    ours = f"{line['estimate']:+.2f}; {settings.bootstrap.confidence:.0%} of roundings {usual}, all {all_of_them}"
    below = int(line["below"])
    reach = f"{below or 'None'} of {settings.starts:,} roundings {'reach' if below > 1 else 'reaches'}"
    numbers = {"p": p, "reach": reach, "needed": rounding.models_needed(said, alpha), "n": int(line["n"])}
    numbers |= {"drop": drop["estimate"], "drop_low": drop["low"], "drop_high": drop["high"]}
    numbers |= {name: drop[name] for name in ("counted", "counted_low", "counted_high")}
    numbers["fits"] = "contains" if drop["low"] <= said <= drop["high"] else "leaves out"
    return Finding(f"{said:+.3f}, significant", ours, not line["low"] <= said <= line["high"], bool(p < alpha), numbers)


def label_images(settings: Published) -> Finding:
    """Size of the labelling set from its factors."""
    text = published.facts("cns_text")
    said, scales = int(text["label_images"]), int(text["label_scales"])
    made = int(np.prod([int(text[f"label_{name}"]) for name in ("seeds", "shifts", "classes")]))
    table = published.read("cns_table8").query("stage == 'i'")["images"].sum()
    ours = f"{made * scales:,} with {scales} scales, {made * (scales + 1):,} with scale 0; Table 8 adds up to {table:,}"
    return Finding(f"{said:,} from {scales} scales", ours, said != made * scales, bool(said == table), {})


def label_people(settings: Published) -> Finding:
    """Images that were left for people, from Table 8."""
    stages = published.read("cns_table8").groupby("stage")["images"].sum()
    left, said = int(stages["ii"] - stages["iii"]), int(published.facts("cns_text")["label_by_people"])
    return Finding(f"{said:,}", f"{left:,}", round(left, -2) != said)


def filter_prevalence(settings: Published) -> Finding:
    """Share of out-of-class images behind the filter's rates, against what Table 8 calls not in class."""
    rates = published.read("cns2024_filter").set_index("filter").loc["CLIP"]
    stages = published.read("cns_table8").groupby("stage")["images"].sum()
    implied, said = derived.prevalence(rates["tpr"], rates["fpr"], rates["accuracy"]), 1 - stages["iv"] / stages["ii"]
    steps = [derived.prevalence(*(rates[["tpr", "fpr", "accuracy"]].to_numpy() + 0.0005 * np.array(s))) for s in np.ndindex(2, 2, 2)]
    steps += [derived.prevalence(*(rates[["tpr", "fpr", "accuracy"]].to_numpy() - 0.0005 * np.array(s))) for s in np.ndindex(2, 2, 2)]
    numbers = {"images": round(implied * stages["ii"]), "outside": int(stages["ii"] - stages["iv"])}
    ours = f"{implied:.1%} ({min(steps):.1%} to {max(steps):.1%} by rounding)"
    return Finding(f"{said:.1%} not in class", ours, not min(steps) <= said <= max(steps), None, numbers)


def user_study(settings: Published) -> Finding:
    """One-sigma margin of the user study."""
    text = published.facts("cns_text")
    count, n, said = int(text["user_study_ooc"]), int(text["user_study_images"]), float(text["user_study_margin"])
    sigma = np.sqrt(count / n * (1 - count / n) / n)
    share, low, high = published.binomial(count, n, confidence=settings.bootstrap.confidence)
    ours = f"{sigma:.2%}; {settings.bootstrap.confidence:.0%} interval {low:.1%} to {high:.1%}"
    numbers = {"low": low, "high": high, "confidence": settings.bootstrap.confidence}
    return Finding(f"{said:.1%}", ours, bool(round(sigma, 3) != said), bool(round(share, 2) == float(text["user_study_ratio"])), numbers)


def fine_tuning(settings: Published) -> Finding:
    """Whether fine-tuning loses accuracy on ImageNet, by a test that does not use that both models saw the same images."""
    row = published.read("cns_table6").set_index("images").loc["IN/val"]
    counts = [round(row["n"] * row[name] / 100) for name in ("without_percent", "with_percent")]
    z, p = proportions_ztest(counts, [row["n"]] * 2)
    lost = row["without_percent"] - row["with_percent"]
    significant = bool(p < 1 - settings.bootstrap.confidence)
    return Finding("no significant decline", f"{lost:.2f} points lost, z = {z:.1f}", significant, not significant, {"lost": lost})


def weather(settings: Published) -> Finding:
    """Table 10: the total from the parts, and whether the shifts can be told apart."""
    table = published.read("cns_table10").set_index("shift")
    parts = table.drop("Total")
    right = (parts["images"] * parts["accuracy_percent"] / 100).round()
    total = 100 * right.sum() / parts["images"].sum()
    p = scipy.stats.chi2_contingency(np.array([right, parts["images"] - right])).pvalue
    _, low, high = published.binomial(int(right["Fog"]), int(parts.loc["Fog", "images"]), confidence=settings.bootstrap.confidence)
    numbers = {"p": p, "low": low, "high": high, "n": int(parts.loc["Fog", "images"])}
    return Finding(
        f"{table.loc['Total', 'accuracy_percent']:.1f} %",
        f"{total:.1f} %",
        bool(round(total, 1) != table.loc["Total", "accuracy_percent"]),
        None,
        numbers,
    )


def modern_transformer(settings: Published) -> Finding:
    """DeiT3 against ConvNeXt at every scale of Table 5."""
    accuracy, drop = published.by_scale("cns_table5"), published.by_scale("cns_table5", "drop")
    names = ["deit3_base_patch16_224.fb_in1k", "convnext_base.fb_in1k"]
    smaller, larger = (int(((drop.loc[names[1]] - drop.loc[names[0]]) * sign > 0).sum()) for sign in (1, -1))
    behind = int((accuracy.loc[names[1]] > accuracy.loc[names[0]]).sum())
    printed = int(drop.loc[names[0]].notna().sum())
    ours = f"a smaller drop at {smaller} of {printed} scales, a larger one at {larger}; "
    ours += f"ConvNeXt is more accurate at {behind} of {accuracy.shape[1]}"
    return Finding("better at every severity", ours, smaller < printed, False if larger else None, {"smaller": smaller, "behind": behind})


def size_order(settings: Published) -> Finding:
    """Whether rCE falls with every step of size in Table 3."""
    rce = published.read("cns_table3").query("axis == 'size'")["rce"].to_numpy()
    rises = int((np.diff(rce) > 0).sum())
    tau = scipy.stats.kendalltau(np.arange(len(rce)), rce).statistic
    return Finding(
        "larger is more robust", f"rCE rises at {rises} of {len(rce) - 1} steps, tau {tau:+.1f}", rises > 0, bool(tau < 0), {"rises": rises}
    )


def clip_average(settings: Published) -> Finding:
    """Average accuracies of zero-shot and fine-tuned CLIP in the earlier text and its own table."""
    text, table = published.facts("cns2024_text"), published.averages("cns2024_table2")["accuracy"]
    said = [float(text[f"clip_{name}_percent"]) for name in ("zero_shot", "finetuned")]
    found = [100 * table[name] for name in ("clip_vit_base_patch16_224", "vit_base_patch16_clip_224.openai_ft_in1k")]
    apart = any(abs(a - b) > 0.5 for a, b in zip(said, found, strict=True))
    paper, ours = (f"{a:.1f} % and {b:.1f} %" for a, b in (said, found))
    return Finding(paper, ours, apart, bool(found[0] < found[1]), {})


def curve_table(settings: Published) -> Finding:
    """The digitised curve of ResNet-18 over all shifts against Table 5."""
    curves = pd.read_csv(paths.PUBLISHED / "accuracy_by_shift.csv").query("model == 'resnet18.a1_in1k' and shift == 'all shifts'")
    table = published.by_scale("cns_table5").loc["resnet18.a1_in1k"]
    most = float((curves.set_index("scale")["accuracy"] - table).abs().max())
    return Finding("Table 5", f"largest difference {most:.3f}", most > 2 * derived.HALF, None, {"most": most})
