"""Findings of the ledger about released code and the sibling papers, one function per line, and what their formulas imply.

Every such function is named as the line in published/ledger.csv and takes the settings of the notebook. They rest on what follows from
Control+Shift's slerp (Eqs. 6 and 7) and from the tables behind XIMAGENET-12's robustness score (Eqs. 1 to 3).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.core.settings.analyses import Published
from cnslib.data import published
from cnslib.studies.controlshift import latents
from cnslib.studies.published import derived
from cnslib.studies.published.findings import UNSAID, Finding

GRID = np.linspace(0, 1, 10_001)  # candidate means of a row, accuracies in [0, 1]
ROUNDED = 0.5e-4  # half of the last digit of a percentage with two decimals
REGIMES = ("original images", "same scenario")


def extended(theta: float, *, size: int, images: int, seed: int, printed: bool) -> pd.DataFrame:
    """Latents of the extend shift at an angle: per image the angle to z and to the target in degrees, and the norm.

    `printed` follows Eq. 7 to the letter; otherwise z and the target change places, as in the released code and in the text.
    """
    generator = np.random.default_rng(seed)
    z, target = generator.standard_normal((images, size)), generator.standard_normal(size)
    z, target = z / np.linalg.norm(z, axis=1, keepdims=True), np.broadcast_to(target / np.linalg.norm(target), z.shape)
    tau = (theta + np.pi / 2) / np.pi
    made = latents.slerp(z, target, tau) if printed else latents.slerp(target, z, tau)
    norm = np.linalg.norm(made, axis=1)
    angles = {name: np.degrees(np.arccos(np.clip((made * other).sum(1) / norm, -1, 1))) for name, other in (("z", z), ("target", target))}
    return pd.DataFrame({**angles, "norm": norm})


def readings(theta: float, *, seed: int) -> pd.DataFrame:
    """The mean angles of a shifted latent to z and to the target in degrees, under both readings of Eq. 7."""
    drawn = {"as text and code mean it": False, "as printed": True}
    rows = {name: extended(theta, size=256, images=20, seed=seed, printed=printed) for name, printed in drawn.items()}
    return pd.DataFrame({name: {"to z": row["z"].mean(), "to the target": row["target"].mean()} for name, row in rows.items()}).T


def rows(name: str, column: str) -> dict[tuple[str, str], np.ndarray]:
    """A table of XIMAGENET-12 as one vector per (model, trained on), over the eight scenarios, in [0, 1]."""
    table = published.read(name)
    return {
        key: part.set_index("scenario")[column].loc[list(published.SCENARIOS)].to_numpy() / 100
        for key, part in table.groupby(["model", "trained_on"])
    }


def fits(
    accuracy: Float[np.ndarray, "scenarios"], deviation: Float[np.ndarray, "scenarios"], mean: Float[np.ndarray, "means"]
) -> np.ndarray:
    """Whether each printed squared deviation is that of the printed accuracy from each candidate mean, up to rounding."""
    away = np.abs(accuracy - mean[:, None])
    return np.abs(away**2 - deviation) <= ROUNDED * (1 + 2 * away) + 1e-9


def implied_means() -> pd.DataFrame:
    """Per row of Table 2 the mean that most of its cells were measured from, how many fit it, and which cells took 0 in its place.

    Also the divisor that gives the printed variance from the printed cells: their sum over the variance.
    """
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    scores, found = published.read("ximagenet12_table2_scores").set_index("model"), []
    for (model, regime), cells in deviation.items():
        counts = fits(accuracy[model, regime], cells, GRID).sum(1)
        mean = GRID[counts == counts.max()].mean()
        zero = fits(accuracy[model, regime], cells, np.zeros(1))[0]
        printed = scores.loc[model, "variance_cross" if regime == REGIMES[0] else "variance_inner"]
        names = ", ".join(np.array(published.SCENARIOS)[zero])
        found.append(
            {
                "model": model,
                "trained_on": regime,
                "mean": mean,
                "fitting": counts.max(),
                "zero": names,
                "variance": printed,
                "sum": cells.sum(),
            }
        )
    return pd.DataFrame(found).assign(divisor=lambda table: table["sum"] / table["variance"])


def sibling_scores() -> pd.DataFrame:
    """Robustness scores of Table 2, printed and recomputed from Table 1, a row per model.

    `cells`: from the printed cells over n - 1. `row_mean`: each row's own mean in all of its cells, over n - 1. `one_mean`: the mean of
    the cross row in both rows, over n - 1. `as_defined`: the same over n, as Eqs. 1 to 3 say.
    """
    accuracy, deviation = rows("ximagenet12_table1", "accuracy_percent"), rows("ximagenet12_table2", "squared_deviation_percent")
    means = implied_means().set_index(["model", "trained_on"])["mean"]
    table = published.read("ximagenet12_table2_scores").set_index("model")[["score"]].rename(columns={"score": "printed"})
    for model in table.index:
        own = [((accuracy[model, regime] - means[model, regime]) ** 2).sum() for regime in REGIMES]
        one = [((accuracy[model, regime] - means[model, REGIMES[0]]) ** 2).sum() for regime in REGIMES]
        cells, n = sum(deviation[model, regime].sum() for regime in REGIMES), len(published.SCENARIOS)
        values = {"cells": cells / (n - 1), "row_mean": sum(own) / (n - 1), "one_mean": sum(one) / (n - 1), "as_defined": sum(one) / n}
        for name, variance in values.items():
            table.loc[model, name] = 1 - variance
    return table


def drop_pairs(model: str, drop_percent: float) -> list[tuple[str, str]]:
    """The pairs of scenarios whose accuracies, trained on originals, differ by a printed drop rate of a model."""
    accuracy = rows("ximagenet12_table1", "accuracy_percent")[model, REGIMES[0]]
    named = list(zip(published.SCENARIOS, accuracy, strict=True))
    return [(a, b) for a, high in named for b, low in named if abs(high - low - drop_percent / 100) < ROUNDED]


DETECTORS = 4
VALUE_60 = 0.1 * np.pi  # value 60 in the released code: 100 (theta + pi/2) / pi


def share_of_steps(steps: int, *, code: dict[str, str]) -> float:
    """The share of DDIM steps (leading spacing) at which the released code's adapter acts."""
    stride = int(code["training_timesteps"]) // steps
    timesteps = np.arange(steps) * stride + int(code["steps_offset"])
    return float((timesteps <= int(code["start_noise"])).mean())


def steps(settings: Published) -> Finding:
    """DDIM steps, and the share of them in which the slider acts."""
    paper, code = published.facts("cns_text"), published.facts("released_code")
    shares = [share_of_steps(int(facts["steps"]), code=code) for facts in (paper, code)]
    ours = f"the slider acts in {shares[0]:.0%} and {shares[1]:.0%} of the steps"
    same = round(shares[0], 2) == float(paper["lora_share"])
    return Finding(paper["steps"], ours, paper["steps"] != code["steps"], bool(same), {"paper_share": shares[0], "code_share": shares[1]})


def fires(code: dict[str, str]) -> int:
    """How many detectors must fire before the released code drops an image: its counter is tried on every number of them."""
    counted = {n: int(code["filter_start_count"]) + DETECTORS - n for n in range(DETECTORS + 1)}
    return min(n for n, count in counted.items() if count <= int(code["filter_keep_above"]))


def vote(settings: Published) -> Finding:
    """The filter's vote: the combinations of detectors that the two rules judge differently, and the rates they allow."""
    text, code = published.facts("cns_text"), published.facts("released_code")
    said, made = int(text["filter_fires"]), fires(code)
    outcomes = np.array([bin(outcome).count("1") for outcome in range(2**DETECTORS)])
    apart = int(((outcomes >= said) != (outcomes >= made)).sum())
    rates = [derived.vote_rates(float(text["filter_recall"]), detectors=DETECTORS, fires=n) for n in (said, made)]
    tpr = published.read("cns2024_filter").set_index("filter").loc["ours", "tpr"]
    numbers = {"apart": apart, "made": made, "tpr": tpr, "free_paper": rates[0][1], "free_code": rates[1][1]}
    numbers |= {"least_paper": rates[0][0], "least_code": rates[1][0]}
    return Finding(
        f"drop if {said} of {DETECTORS} fire", f"{apart} of {len(outcomes)} outcomes are judged differently", said != made, None, numbers
    )


def failure_bins(settings: Published) -> Finding:
    """Three definitions of the failure point distribution, and what the shares of the earlier table add up to."""
    said = [published.facts(name)["failure_point_bin"] for name in ("cns_text", "cns2024_text", "released_code")]
    sums = published.read("cns2024_table3").groupby("model")["share"].sum()
    ours = f"{len(set(said))} definitions; the earlier shares add up to {sums.min():.2f} to {sums.max():.2f}, not to the failing share"
    return Finding(said[0], ours, len(set(said)) > 1, None, {"definitions": len(set(said))})


def objective(settings: Published) -> Finding:
    """What a loss on v weighs each timestep with, seen as a loss on epsilon: one over alpha-bar."""
    paper, code = published.facts("cns_text"), published.facts("released_code")
    first, last = (float(code[name]) ** 0.5 for name in ("beta_start", "beta_end"))
    alpha = np.cumprod(1 - np.linspace(first, last, int(code["training_timesteps"])) ** 2)
    stride = int(code["training_timesteps"]) // int(code["denoising_steps"])
    late, early = 1 / alpha[-1 - stride], 1 / alpha[-1 - stride * (int(code["denoising_steps"]) - 1)]
    ours = f"weight {late:.0f} at the noisiest step of training, {early:.1f} at the cleanest"
    return Finding(paper["objective"], ours, paper["objective"] != code["objective"], None, {"late": late, "early": early})


def guidance(settings: Published) -> Finding:
    """Guidance in the partial denoise, where the conditional and the unconditional prompt are the same."""
    code = published.facts("released_code")
    prediction = np.random.default_rng(settings.seed).standard_normal(1000)
    scales = [float(code[name]) for name in ("denoising_guidance", "upstream_guidance")]
    guided = [prediction + scale * (prediction - prediction) for scale in scales]
    change = float(np.abs(guided[0] - guided[1]).max())
    return Finding(
        UNSAID, f"{scales[0]:g} and {scales[1]:g} give predictions that differ by {change:g}", change == 0, None, {"change": change}
    )


def undocumented(settings: Published) -> Finding:
    """Settings that only the code states."""
    names = [name.removeprefix("undocumented_") for name in published.facts("released_code") if name.startswith("undocumented_")]
    return Finding(UNSAID, f"{len(names)} settings: {', '.join(names).replace('_', ' ')}", bool(names), None, {"count": len(names)})


def scale_name(settings: Published) -> Finding:
    """The scale that the released parser reads from its own and from the published file names."""
    code, cut = published.facts("released_code"), int(published.facts("released_code")["scale_characters_cut"])
    read = [int(code[f"image_name_{kind}"].split("_")[-1][:-cut]) / 1000 for kind in ("written", "published")]
    true = int(code["image_name_published"].split("_")[-1].split(".")[0]) / 1000
    return Finding(
        f"{true:g}",
        f"{read[0]:g} from the names it writes, {read[1]:g} from the published ones",
        read[1] != true,
        None,
        {"factor": true / read[1]},
    )


def generation_hours(settings: Published) -> Finding:
    """GPU hours of the generation from its own factors, in the final and the earlier text."""
    text, old = published.facts("cns_text"), published.facts("cns2024_text")
    hours = [int(text["sliders"]) * float(text[f"generation_minutes_{end}"]) / 60 for end in ("low", "high")]
    said, before = float(text["gpu_hours_generation"]), float(old["gpu_hours_generation"])
    ours = f"{hours[0]:.0f} to {hours[1]:.0f} from {text['sliders']} runs"
    return Finding(
        f"{said:g}, earlier {before:g}", ours, not hours[0] <= before <= hours[1], bool(hours[0] <= said <= hours[1]), {"before": before}
    )


def training_hours(settings: Published) -> Finding:
    """GPU hours of the training from its own factors."""
    text = published.facts("cns_text")
    hours = [int(text["sliders"]) * float(text[f"slider_hours_{end}"]) for end in ("low", "high")]
    said = float(text["gpu_hours_training"])
    return Finding(f"{said:g}", f"{hours[0]:g} to {hours[1]:g}", not hours[0] <= said <= hours[1])


def image_count(settings: Published) -> Finding:
    """Images of the benchmark from its factors."""
    text = published.facts("cns_text")
    made = int(np.prod([int(text[name]) for name in ("shifts", "classes", "seeds", "scales")]))
    kept = int(text["images_per_scale"]) * int(text["scales"])
    said = [int(text["images_generated"]), int(text["images_total"])]
    return Finding(f"{said[0]:,} and {said[1]:,}", f"{made:,} and {kept:,}; {kept / made:.1%} are kept", [made, kept] != said)


def slerp(settings: Published) -> Finding:
    """Where Eqs. 6 and 7 of Control+Shift lead at theta = pi/2, as printed and with z and the target exchanged."""
    text, code = published.facts("control_shift_text"), published.facts("released_code")
    size = int(text["latent_size"])
    angles = [extended(np.pi / 2, size=size, images=settings.images, seed=settings.seed, printed=way).mean() for way in (True, False)]
    ours = (
        f"the printed formula gives the target ({angles[0]['z']:.0f} degrees from z), exchanged it gives z ({angles[1]['z']:.0f} degrees)"
    )
    same = code["control_shift_slerp_second"] == text["slerp_at_half_pi"]
    return Finding(f"{text['slerp_at_half_pi']} at theta = pi/2", ours, bool(angles[0]["z"] > 1), bool(same and angles[1]["z"] < 1), {})


def latent_norm(settings: Published) -> Finding:
    """Norm of the latents against that of the normal draws that the generator expects."""
    text = published.facts("control_shift_text")
    size = int(text["latent_size"])
    made = extended(0, size=size, images=settings.images, seed=settings.seed, printed=True)["norm"].mean()
    return Finding(
        text["latent_norm"],
        f"{made:.0f} by the formula, {np.sqrt(size):.1f} for draws of the prior",
        bool(made < 0.9 * np.sqrt(size)),
        None,
        {"factor": np.sqrt(size) / made},
    )


def support(settings: Published) -> Finding:
    """Whether the extend shift's sets overlap: angles to the target at theta = 0 and at the released value 60."""
    text, spans = published.facts("control_shift_text"), []
    for theta in (0.0, VALUE_60):
        made = extended(theta, size=int(text["latent_size"]), images=settings.images, seed=settings.seed, printed=False)
        spans.append(made["target"].quantile([0.005, 0.995]).tolist())
    disjoint = spans[0][1] < spans[1][0]
    words = [f"{low:.0f} to {high:.0f} degrees" for low, high in spans]
    ours = f"99 % of the training set lie {words[0]} from the target, of the set at value 60 {words[1]}"
    return Finding(f"intensity {text['intensity']}", ours, disjoint, not disjoint, {"gap": spans[1][0] - spans[0][1]})


def variance_divisor(settings: Published) -> Finding:
    """What XIMAGENET-12's printed variances were divided by."""
    table, n = implied_means(), len(published.SCENARIOS)
    near = table["variance"] * (n - 1) - table["sum"]
    fits = int((near.abs() < (n - 1) * 0.5e-4 + n * ROUNDED).sum())
    return Finding(
        f"n = {n}",
        f"n - 1 = {n - 1} fits {fits} of {len(table)} rows (median {table['divisor'].median():.2f})",
        fits == len(table),
        None,
        {"fits": fits},
    )


def variance_mean(settings: Published) -> Finding:
    """From which mean XIMAGENET-12's inner rows were measured."""
    means = implied_means().pivot(index="model", columns="trained_on", values="mean")
    lower = means[REGIMES[0]] - means[REGIMES[1]]
    ours = f"the inner mean is lower by {lower.min():.2f} to {lower.max():.2f} in {int((lower > 0.01).sum())} of {len(lower)} models"
    return Finding("one mean for both", ours, bool((lower > 0.01).any()), None, {"models": len(lower)})


def zero_mean(settings: Published) -> Finding:
    """Cells of XIMAGENET-12's Table 2 that are the accuracy squared, and the score without that slip."""
    table, scores = implied_means(), sibling_scores()
    line = table[table["zero"] != ""].iloc[0]
    model = line["model"]
    ours = f"{scores.loc[model, 'row_mean']:.4f} with the row's own mean in {line['zero'].replace('_', ' ')}"
    return Finding(f"{model}: {scores.loc[model, 'printed']:.4f}", ours, bool((table["zero"] != "").any()), None, {"model": model})


def defined_scores(settings: Published) -> Finding:
    """XIMAGENET-12's scores by Eqs. 1 to 3 to the letter, and whether the models keep their order."""
    table = sibling_scores().sort_values("printed", ascending=False)
    order = list(table.sort_values("as_defined", ascending=False).index)
    texts = [", ".join(f"{model} {value:.3f}" for model, value in table[name].items()) for name in ("printed", "as_defined")]
    return Finding(texts[0], texts[1], bool((table["printed"] - table["as_defined"]).abs().max() > 1e-3), order == list(table.index), {})


def swin_score(settings: Published) -> Finding:
    """Whether Swin has a higher score and a higher CIFAR-10 accuracy than ViT, as the text says."""
    table, scores = published.read("ximagenet12_table2_scores").set_index("model"), sibling_scores()
    higher = [bool(values["Swin"] > values["ViT"]) for values in (table["score"], table["cifar10_percent"], scores["row_mean"])]
    swin, vit = table.loc["Swin"], table.loc["ViT"]
    ours = f"score {swin['score']:.4f} against {vit['score']:.4f}, "
    ours += f"CIFAR-10 {swin['cifar10_percent']:.2f} % against {vit['cifar10_percent']:.2f} %"
    return Finding("Swin above ViT in both", ours, not all(higher[:2]), all(higher[1:]), {"corrected": scores.loc["Swin", "row_mean"]})


def drop_rates(settings: Published) -> Finding:
    """Between which scenarios the two printed drop rates lie, and the rates between the same scenarios."""
    text, found = published.facts("ximagenet12_text"), {}
    for model, key in (("VGG-16", "drop_rate_vgg_percent"), ("ViT", "drop_rate_vit_percent")):
        found[model] = (float(text[key]), drop_pairs(model, float(text[key])))
    words = [f"{model}: {', '.join(' to '.join(pair) for pair in pairs)}".replace("_", " ") for model, (_, pairs) in found.items()]
    pair = found["ViT"][1][0]
    accuracy = dict(zip(published.SCENARIOS, rows("ximagenet12_table1", "accuracy_percent")["VGG-16", REGIMES[0]], strict=True))
    same = 100 * (accuracy[pair[0]] - accuracy[pair[1]])
    paper = " against ".join(f"{value:.2f} %" for value, _ in found.values())
    apart = not set(found["VGG-16"][1]) & set(found["ViT"][1])
    return Finding(paper, "; ".join(words), apart, bool(same < found["ViT"][0]), {"same": same, "vit": found["ViT"][0]})


def p_values(settings: Published) -> Finding:
    """p values above 1 in XIMAGENET-12's Table 3."""
    table = published.read("ximagenet12_table3")
    wrong = table[table["p"] > 1]
    return Finding(
        "p values", f"{len(wrong)} of {len(table)} are above 1", len(wrong) > 0, None, {"low": wrong["p"].min(), "high": wrong["p"].max()}
    )


def image_total(settings: Published) -> Finding:
    """Images of XIMAGENET-12 from their parts."""
    text = {name: int(value) for name, value in published.facts("ximagenet12_text").items() if name.startswith(("images", "copies"))}
    made = text["images_original"] * text["copies"] + text["images_ai"]
    return Finding(f"{text['images_total']:,}", f"{made:,}", made != text["images_total"], None, {"apart": text["images_total"] - made})


def rings(angles: list[float], *, size: int, images: int, seed: int) -> pd.DataFrame:
    """Mean and standard deviation of what `extended` measures, for the printed formula and the exchanged one, a column per angle."""
    made = {
        (way, theta): extended(theta, printed=way == "printed", size=size, images=images, seed=seed)
        for way in ("printed", "exchanged")
        for theta in angles
    }
    return pd.concat({key: part.agg(["mean", "std"]).stack() for key, part in made.items()}, axis=1)
