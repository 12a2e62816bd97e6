"""The ledger's values follow from the published tables, and these functions agree with counts by hand."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

from cnslib.core import paths
from cnslib.data import published
from cnslib.studies import published as derived

RESNET18, SWIN = "resnet18.a1_in1k", ("Swin", "same scenario")
TEXT, OLD, CODE = (published.facts(name) for name in ("cns_text", "cns2024_text", "released_code"))
CONTROL, XIMAGENET = (published.facts(name) for name in ("control_shift_text", "ximagenet12_text"))
LATENTS = {"size": int(CONTROL["latent_size"])}


def product(*names: str) -> int:
    return int(np.prod([int(TEXT[name]) for name in names]))


def validation() -> str:
    both = published.read("cns_table7").merge(published.read("timm_validation"), on="model", suffixes=("", "_timm")).set_index("model")
    worst = (both["accuracy_percent"] - both["accuracy_percent_timm"]).nsmallest(2)
    return f"{' and '.join(f'{value:.1f} %' for value in both.loc[worst.index[::-1], 'accuracy_percent_timm'])} (timm)"


def objective() -> str:
    first, last = (float(CODE[name]) ** 0.5 for name in ("beta_start", "beta_end"))
    steps, denoising = int(CODE["training_timesteps"]), int(CODE["denoising_steps"])
    alpha, stride = np.cumprod(1 - np.linspace(first, last, steps) ** 2), steps // denoising
    late, early = 1 / alpha[-1 - stride], 1 / alpha[-1 - stride * (denoising - 1)]
    return f"weight {late:.0f} at the noisiest step of training, {early:.1f} at the cleanest"


def fine_tuning() -> str:
    row = published.read("cns_table6").set_index("images").loc["IN/val"]
    counts = [round(row["n"] * row[name] / 100) for name in ("without_percent", "with_percent")]
    lost, z = row["without_percent"] - row["with_percent"], proportions_ztest(counts, [row["n"]] * 2)[0]
    return f"{lost:.2f} points lost, z = {z:.1f}"


def user_study() -> str:
    count, n = int(TEXT["user_study_ooc"]), int(TEXT["user_study_images"])
    low, high = proportion_confint(count, n, method="wilson")
    return f"{np.sqrt(count / n * (1 - count / n) / n):.2%}; 95% interval {low:.1%} to {high:.1%}"


def prevalence(tpr: float, fpr: float, accuracy: float) -> float:
    """The share of positives at which a detector with these rates has this accuracy (Table 2b)."""
    return (accuracy - (1 - fpr)) / (tpr - (1 - fpr))


def filter_prevalence() -> str:
    rates = published.read("cns2024_filter").set_index("filter").loc["CLIP", ["tpr", "fpr", "accuracy"]].to_numpy(float)
    nearby = [prevalence(*(rates + sign * 0.0005 * np.array(step))) for sign in (1, -1) for step in np.ndindex(2, 2, 2)]
    return f"{prevalence(*rates):.1%} ({min(nearby):.1%} to {max(nearby):.1%} by rounding)"


def support() -> str:
    spans = [derived.extended(theta, printed=False, **LATENTS)["target"].quantile([0.005, 0.995]) for theta in (0, 0.1 * np.pi)]
    low, high = (f"{span.iloc[0]:.0f} to {span.iloc[1]:.0f} degrees" for span in spans)
    return f"99 % of the training set lie {low} from the target, of the set at value 60 {high}"


def variance_mean() -> str:
    lower = derived.implied_means()["mean"].unstack().diff(axis=1, periods=-1).iloc[:, 0]
    return f"the inner mean is lower by {lower.min():.2f} to {lower.max():.2f} in {int((lower > 0.01).sum())} of {len(lower)} models"


def variance_divisor() -> str:
    table, n = derived.implied_means(), len(published.SCENARIOS)
    fitting = ((table["variance"] * (n - 1) - table["sum"]).abs() < (n - 1) * 0.5e-4 + n * derived.ROUNDED).sum()
    return f"n - 1 = {n - 1} fits {fitting} of {len(table)} rows (median {table['divisor'].median():.2f})"


def drop_rates() -> str:
    rates = {model: float(XIMAGENET[f"drop_rate_{key}_percent"]) for model, key in (("VGG-16", "vgg"), ("ViT", "vit"))}
    cells = {model: row for (model, regime), row in derived.rows("ximagenet12_table1", "accuracy_percent").items() if "orig" in regime}
    names, found = np.array(published.SCENARIOS), {}
    for model, rate in rates.items():
        pairs = np.argwhere(np.abs(np.subtract.outer(cells[model], cells[model]) - rate / 100) < derived.ROUNDED)
        found[model] = ", ".join(" to ".join(names[pair]) for pair in pairs)
    return "; ".join(f"{model}: {text}" for model, text in found.items()).replace("_", " ")


def failure_shares() -> str:
    row = derived.failures().loc[RESNET18]
    return f"{row['failing']:.2f} fail somewhere, so {row['recovered']:.0%} of the earlier failures recover"


def reference_error() -> str:
    table = derived.implied_reference()
    return "AlexNet's summed error " + " or ".join(
        f"{table.loc[name, 'mean']:.2f} (spread {table.loc[name, 'spread']:.1%}) over {name[4:]}" for name in table.index[:2]
    )


def partial() -> str:
    row = derived.size_correlations().loc[("accuracy", "log2")]
    return f"{row['estimate']:+.2f}; 95% of roundings {row['low']:+.2f} to {row['high']:+.2f}"


def size_order() -> str:
    rce = published.read("cns_table3").query("axis == 'size'")["rce"].to_numpy()
    tau = scipy.stats.kendalltau(np.arange(len(rce)), rce).statistic
    return f"rCE rises at {(np.diff(rce) > 0).sum()} of {len(rce) - 1} steps, tau {tau:+.1f}"


def curve_table() -> str:
    curve = pd.read_csv(paths.PUBLISHED / "accuracy_by_shift.csv").query(f"model == '{RESNET18}' and shift == 'all shifts'")
    most = (curve.set_index("scale")["accuracy"] - published.by_scale("cns_table5").loc[RESNET18]).abs().max()
    return f"largest difference {most:.3f}"


def label_images() -> str:
    count, scales = product("label_seeds", "label_shifts", "label_classes"), int(TEXT["label_scales"])
    table = published.read("cns_table8").query("stage == 'i'")["images"].sum()
    return f"{count * scales:,} with {scales} scales, {count * (scales + 1):,} with scale 0; Table 8 adds up to {table:,}"


def label_people() -> str:
    stages = published.read("cns_table8").groupby("stage")["images"].sum()
    return f"{stages['ii'] - stages['iii']:,}"


def clip_average() -> str:
    table = 100 * published.averages("cns2024_table2")["accuracy"]
    return f"{table['clip_vit_base_patch16_224']:.1f} % and {table['vit_base_patch16_clip_224.openai_ft_in1k']:.1f} %"


def defined_scores() -> str:
    table = derived.scores().sort_values("printed", ascending=False)["as_defined"]
    return ", ".join(f"{model} {value:.3f}" for model, value in table.items())


def hours(*factors: str, minutes: bool = False) -> list[float]:
    return [int(TEXT["sliders"]) * float(TEXT[f"{factors[0]}_{end}"]) / (60 if minutes else 1) for end in ("low", "high")]


def p_values() -> str:
    p = published.read("ximagenet12_table3")["p"]
    return f"{(p > 1).sum()} of {len(p)} are above 1"


def image_count() -> str:
    drawn, kept = product("shifts", "classes", "seeds", "scales"), product("images_per_scale", "scales")
    return f"{drawn:,} and {kept:,}; {kept / drawn:.1%} are kept"


def steps() -> str:
    """The share of DDIM steps (leading spacing) at which the released code's adapter acts."""
    total, offset, start = (int(CODE[name]) for name in ("training_timesteps", "steps_offset", "start_noise"))
    shares = [(np.arange(int(facts["steps"])) * (total // int(facts["steps"])) + offset <= start).mean() for facts in (TEXT, CODE)]
    return "the slider acts in {:.0%} and {:.0%} of the steps".format(*shares)


def averages() -> str:
    """How far the printed average drops of Table 5 lie from means over all six scales, and over the five above 0."""
    accuracy, printed = published.by_scale("cns_table5"), published.averages("cns_table5")["drop"]
    drop = accuracy[[0.0]].to_numpy() - accuracy
    return "mean difference {:.4f} over six scales, {:.4f} over five".format(
        *((table.mean(axis=1) - printed).abs().mean() for table in (drop, drop.drop(columns=0.0)))
    )


def table4(label: str) -> str:
    table = published.read("cns_table3").merge(published.read("cns_table4"), on="model", suffixes=("_3", "")).set_index("label")
    return f"{table.loc[label, 'rce']:.3f} (Table 4)"


LINES = {
    "validation": validation,
    "steps": steps,
    "objective": objective,
    "averages": averages,
    "rce_dinov1": lambda: table4("DINOv1-IN1k"),
    "rce_deit3": lambda: table4("DeiT3-H"),
    "failure_shares": failure_shares,
    "reference_error": reference_error,
    "partial_correlation": partial,
    "label_images": label_images,
    "label_people": label_people,
    "filter_prevalence": filter_prevalence,
    "user_study": user_study,
    "fine_tuning": fine_tuning,
    "size_order": size_order,
    "curve_table": curve_table,
    "clip_average": clip_average,
    "generation_hours": lambda: "{:.0f} to {:.0f} from 1400 runs".format(*hours("generation_minutes", minutes=True)),
    "training_hours": lambda: "{:g} to {:g}".format(*hours("slider_hours")),
    "image_count": image_count,
    "latent_norm": lambda: f"1 by the formula, {np.sqrt(LATENTS['size']):.1f} for draws of the prior",
    "support": support,
    "variance_divisor": variance_divisor,
    "variance_mean": variance_mean,
    "zero_mean": lambda: f"{derived.scores().loc['Swin', 'row_mean']:.4f} with the row's own mean in blur object, segmented image",
    "defined_scores": defined_scores,
    "drop_rates": drop_rates,
    "p_values": p_values,
    "image_total": lambda: f"{int(XIMAGENET['images_original']) * int(XIMAGENET['copies']) + int(XIMAGENET['images_ai']):,}",
}


@pytest.mark.parametrize("line", LINES)
def test_our_value_in_the_ledger_follows_from_the_tables(line):
    assert derived.ledger().set_index("id").loc[line, "ours"] == LINES[line]()


def test_the_page_shows_the_ledger_and_its_counts():
    text, verdicts = derived.PAGE.read_text(), derived.ledger()["verdict"].value_counts()
    differ = verdicts.filter(like="differs").sum()
    assert text == derived.page(text)
    assert (
        f"Of {verdicts.sum()} comparisons {verdicts['agrees']} agree and {differ} differ; in {verdicts['differs, the claim falls']}" in text
    )


def test_partial_correlation_is_that_of_the_three_pairwise_ones():
    table = derived.family()
    ood, control, size = table[[0.5, 1.0, 1.5, 2.0, 2.5]].mean(axis=1), table["id_accuracy"], np.log2(table["parameters"])
    r = np.corrcoef([size, ood, control])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert derived.partial_correlation(*(values.to_numpy() for values in (size, ood, control))) == pytest.approx(expected)


def test_the_printed_correlation_is_one_that_the_rounding_of_drops_allows_and_none_of_accuracies():
    table, said = derived.size_correlations(starts=200), float(TEXT["partial_correlation"])
    assert table.loc[("drop", "log2"), "estimate"] == pytest.approx(-0.450, abs=1e-3)
    assert table.loc[("drop", "log2"), "low"] <= said <= table.loc[("drop", "log2"), "high"]
    assert table.loc[("accuracy", "log2"), "below"] == 0


def test_printed_scores_follow_from_the_printed_cells_over_seven():
    table = derived.scores()
    np.testing.assert_allclose(table["cells"], table["printed"], atol=2e-4)
    by_hand = 1 - (1.17 + 0.18 + 0.50 + 0.68 + 0.10 + 0.38 + 53.04 + 7.12 + 0.10 + 0.11 + 0.17 + 0.20 + 6.96 + 0.30) / 700
    assert table.loc["ResNet50", "cells"] == pytest.approx(by_hand)


def test_swins_two_cells_are_squared_accuracies():
    zero = derived.implied_means()["zero"]
    assert zero[SWIN] == "blur_object, segmented_image" and (zero.drop(index=[SWIN]) == "").all()
    assert {round(0.7502**2, 4), round(0.8064**2, 4)} == {0.5628, 0.6503}


def test_printed_slerp_ends_at_the_target_and_the_exchanged_one_at_the_latent():
    printed, exchanged = (derived.extended(np.pi / 2, size=64, images=5, printed=way) for way in (True, False))
    assert printed["target"].max() < 1e-3 and exchanged["z"].max() < 1e-3 and printed["z"].min() > 30
