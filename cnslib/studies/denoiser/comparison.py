"""The diffusion classifier beside the discriminative ones on the same images: which images, its answers, and the differences."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8

from cnslib.core import tables, units, workers
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.analyses import Denoiser
from cnslib.core.settings.method import FEWEST, Bootstrap
from cnslib.data import artifacts
from cnslib.plots.captions.words import certain, interval
from cnslib.stats import accuracy, axes, bootstrap, verdicts
from cnslib.stats.accuracy import Shares
from cnslib.stats.bootstrap import NIL
from cnslib.studies.denoiser import diffusion_classifier
from cnslib.studies.denoiser.diffusion_classifier import Judge

Rates = Float[np.ndarray, "rows groups models scales"]


def model(loss: str) -> str:
    """What the diffusion classifier with one of its losses is called among the classifiers."""
    return f"denoiser_{loss}"


def choose(kept: pd.DataFrame, classes: list[str], *, settings: Denoiser) -> pd.DataFrame:
    """The first `seeds` kept trajectories of each shift and class, in the order of their seeds: no answer has a say.

    Raises ValueError where none is left.
    """
    asked = kept[kept["shift"].isin(settings.shifts) & kept["class"].isin(classes)]
    chosen = asked.sort_values(tables.TRAJECTORY).groupby(["shift", "class"]).head(settings.seeds)
    if chosen.empty:
        raise ValueError(f"denoiser.shifts: none of {len(kept)} kept trajectories is of {settings.shifts}")
    return chosen[tables.TRAJECTORY].reset_index(drop=True)


def keys(chosen: pd.DataFrame, *, settings: Denoiser) -> pd.DataFrame:
    """The images of some trajectories: every scale above 0, and the unshifted image of each class and seed once."""
    above = chosen.merge(pd.DataFrame({"scale": [scale for scale in settings.scales if scale > 0]}), how="cross")
    plain = chosen[["class", "seed"]].drop_duplicates().assign(shift=UNSHIFTED, scale=0.0)
    return pd.concat([plain, above])[tables.KEY].sort_values(tables.KEY, ignore_index=True)


def seeds_words(chosen: pd.DataFrame) -> str:
    """From how many seeds the trajectories come, and how many each has: the units of the intervals; and if these are too few."""
    counts = chosen["seed"].value_counts()
    each = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
    few = f", fewer than the {FEWEST} that resampling needs" if len(counts) < FEWEST else ""
    return f"{len(counts)} seeds ({each} trajectories each{few})"


def pictures(folder: Path, wanted: pd.DataFrame) -> pd.DataFrame:
    """The images of some keys; ValueError counts and shows those that the tables of `folder` lack."""
    shards = [artifacts.images(folder, shift) for shift in wanted["shift"].unique()]
    return tables.select(pd.concat(shards, ignore_index=True), wanted, tables.KEY, "images of the chosen trajectories")


def judge_all(judge: Judge, plan: dict[Path, pd.DataFrame], *, folder: Path, settings: Denoiser) -> pd.DataFrame:
    """Makes the units that are missing or outdated, deletes those of other trajectories, and reads all errors."""
    files = {path: (path.relative_to(folder).as_posix(), diffusion_classifier.stamp(judge, part, settings)) for path, part in plan.items()}
    shelf = units.Shelf(folder, files, "*/*.parquet")
    pieces = [(judge, plan[path], shelf[path], settings) for path in shelf.waiting()]
    workers.each(diffusion_classifier.make, pieces, device=judge.parts.vae.device, desc="trajectories")
    return tables.read_units(shelf, diffusion_classifier.errors_schema)


def answers(errors: pd.DataFrame, classes: list[str], loss: str, *, size: int, settings: Denoiser) -> pd.DataFrame:
    """The predictions table of one loss, model "denoiser_<loss>".

    A logit is minus the error that a class has more than the answer, summed over the `size` values of a latent (Li et al., Eq. 6).
    So the margin is above 0 where the answer is right; the probability is the softmax of the logits and is not calibrated.
    """
    parts = [
        answer(own, classes, loss, size=size, settings=settings).assign(**dict(zip(tables.KEY, key, strict=True)))
        for key, own in errors.groupby(tables.KEY)
    ]
    named = pd.concat(parts, ignore_index=True).assign(model=model(loss), preprocessing="latent mean")
    return tables.check(named, tables.predictions, f"answers by {loss}")


def answer(errors: pd.DataFrame, classes: list[str], loss: str, *, size: int, settings: Denoiser) -> pd.DataFrame:
    """Top-1, top-5, probability and margin of one image; `errors` are its rows of the table of errors."""
    grid = errors.pivot(index="timestep", columns="candidate", values=loss)[classes].to_numpy()
    logits = diffusion_classifier.logits(grid, settings, size=size)
    order = np.argsort(-logits, kind="stable")
    true = classes.index(errors["class"].iloc[0])
    margin = logits[true] - np.delete(logits, true).max(initial=-np.inf)
    probability = np.exp(logits[true]) / np.exp(logits).sum()
    top5 = [classes[place] for place in order[:5]]
    return pd.DataFrame({"top1": top5[:1], "top5": [top5], "probability": probability, "margin": margin})


def costs(images: int, *, classes: int, settings: Denoiser) -> pd.DataFrame:
    """Network evaluations of single samples, per image and for all, before any is made: without stages, and bounds with them."""
    per_image = pd.Series(diffusion_classifier.cost(settings, classes=classes), name="per image").rename_axis("stages").to_frame()
    return per_image.assign(evaluations=per_image["per image"] * images)


def announce(judge: Judge, plan: dict[Path, pd.DataFrame], *, settings: Denoiser) -> None:
    """Says how many images wait and how many minutes they will take on one core, by the time of one forward pass.

    On stderr, which the executed copy of a notebook does not keep: equal runs leave equal copies, whatever was restored.
    """
    waiting = pd.concat(
        [part for path, part in plan.items() if not units.Unit(path, diffusion_classifier.stamp(judge, part, settings)).done]
        or [pd.DataFrame()]
    )
    if len(waiting):
        seconds = seconds_per_evaluation(judge, tables.pictures(waiting[:1], "first")[0])
        most = len(waiting) * diffusion_classifier.cost(settings, classes=len(judge.classes))["most"]
        print(f"{len(waiting)} images wait: at most {most:,} evaluations, {most * seconds / 60:.0f} minutes on one core", file=sys.stderr)


def seconds_per_evaluation(judge: Judge, picture: UInt8[np.ndarray, "height width 3"]) -> float:
    """The time of one network evaluation: one timestep of one picture with all classes in the pass."""
    clean, everybody = diffusion_classifier.latent(judge.parts, picture), list(range(len(judge.classes)))
    noise, place = diffusion_classifier.noise_like(clean, "speed"), len(judge.parts.scheduler.alphas_cumprod) // 2
    start = time.perf_counter()
    diffusion_classifier.errors(judge, clean, noise, place, everybody)
    return (time.perf_counter() - start) / len(everybody)


def rivals(answers: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """The answers of all evaluated classifiers to some images; ValueError where one of the images has none."""
    return tables.select(answers.astype(dict.fromkeys(tables.TEXTS, str)), wanted, tables.KEY, "predictions of the chosen images")


def lead(errors: Shares, *, reference: str) -> pd.DataFrame:
    """How much more accuracy the reference loses than each other model on the same images, averaged over the scales as in Table 5."""
    behind = behind_reference(errors, reference)
    return without(accuracy.paired(lambda rates: behind(rates).mean(-1, keepdims=True), errors, bins=[0]), reference)


def widening(errors: Shares, *, reference: str) -> pd.DataFrame:
    """How much the reference's lead in accuracy drop grows from the first scale above 0 to the last one (Fig. 14)."""
    behind = behind_reference(errors, reference)
    return without(accuracy.paired(lambda rates: behind(rates)[..., [-1]] - behind(rates)[..., [1]], errors, bins=[0]), reference)


def behind_reference(errors: Shares, reference: str) -> Callable[[Rates], Rates]:
    """Accuracy drop of the reference minus that of each model, of given error rates: paired, since all see the same images."""
    place = accuracy.model_index(errors, reference)
    return lambda rates: accuracy.falls(rates)[:, :, [place]] - accuracy.falls(rates)


def without(table: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The rows of all models but the reference, which does not differ from itself."""
    return table[table["model"] != reference].drop(columns="scale").reset_index(drop=True)


def relative_margins(answers: pd.DataFrame, errors: pd.DataFrame, *, size: int) -> str:
    """The median size of the margin, whatever its sign, by each loss as a share of a picture's error, summed over `size` values."""
    middle = answers.assign(margin=answers["margin"].abs()).groupby("model")["margin"].median()
    total = errors.groupby(tables.KEY)[["l1", "l2"]].mean().mean() * size
    return ", ".join(f"{middle[model(loss)] / total[loss]:.2%} of the error ({loss})" for loss in ("l1", "l2"))


def at_last(printed: pd.DataFrame, drops: pd.DataFrame, *, scale: float) -> pd.DataFrame:
    """Published drops (counterpart, shift, published) beside our counterparts' at one scale."""
    last = drops[drops["scale"] == scale].rename(columns={"model": "counterpart"})
    return printed.drop(columns=["scale", "source"]).merge(last.drop(columns="scale"), on=["counterpart", "shift"])


def end_records(accuracies: pd.DataFrame, settings: Denoiser) -> dict[str, dict]:
    """Accuracy over all shifts at the first and at the last scale as records, by classifier."""
    pooled = accuracies[accuracies["shift"] == accuracy.ALL]
    ends = (settings.scales[0], settings.scales[-1])
    return {f"accuracy_scale_{scale:g}": bootstrap.records(pooled[pooled["scale"] == scale], "model") for scale in ends}


def headline(pooled: pd.DataFrame, ends: tuple[float, float], *, scale: float, n: int, confidence: float) -> str:
    """Against how many classifiers the diffusion classifier surely loses less or more accuracy, and from where to where it falls.

    `pooled` is its `lead` over all shifts, one row per classifier; `ends` are its accuracies at the first and at the last scale.
    """
    worse, better = certain(pooled)
    rest = len(pooled) - worse - better
    half = len(pooled) / 2
    kind = "more robust than most" if better > half else "less robust than most" if worse > half else "undecided for most"
    first = f"By intervals that stand alone the diffusion classifier loses less accuracy than {better} of {len(pooled)} classifiers"
    first = f"{kind.capitalize()}. {first} and more than {worse}"
    falls = f"Its accuracy falls from {ends[0]:.2f} to {ends[1]:.2f} at scale {scale:g} ({n} trajectories)"
    return f"{first}; {rest} comparisons stay open. {luck(pooled, confidence=confidence)}. {falls}"


def luck(pooled: pd.DataFrame, *, confidence: float) -> str:
    """How many of so many intervals leave out zero by luck, and how near to zero the nearest of those comes that do."""
    away = np.maximum(pooled["low"], -pooled["high"])
    said = f"Of {len(pooled)} such intervals, {len(pooled) * (1 - confidence):.1f} would leave out zero by luck"
    if not (away > 0).any():
        return said
    least = away[away > 0].min()
    return f"{said}; of those that do, the nearest ends {f'{least:.3f}' if least >= 0.001 else 'less than 0.001'} from it"


def lead_words(pooled: pd.DataFrame) -> str:
    """Beside whom the diffusion classifier comes out best and worst, by estimate, and how many intervals leave out zero."""
    own = pooled.set_index("model").sort_values("estimate")
    best, worst = (f"{interval(own.iloc[place], '+.2f')} beside {own.index[place]}" for place in (0, -1))
    above, below = certain(pooled)
    return f"How much more accuracy it loses: from {best} to {worst}; {above} of {len(own)} intervals lie above zero, {below} below"


def margin_words(sure: pd.DataFrame, model: str) -> str:
    """The mean margin of the true class at the first and at the last scale under every shift, by one loss (as `margins`)."""
    own = sure[sure["model"] == model].sort_values("scale").groupby("shift")["estimate"]
    said = [f"{start:.1f} to {end:.1f} under {shift}" for shift, start, end in zip(own.first().index, own.first(), own.last(), strict=True)]
    return f"The margin of the true class goes from {', '.join(said)} ({model})"


def timestep_words(single: pd.DataFrame) -> str:
    """Which timestep alone names most pictures right, for each loss (as `hits_by` loss and timestep)."""
    best = single.loc[single.groupby("loss")["estimate"].idxmax()]
    said = [f"timestep {row.timestep} by {row.loss} ({row.estimate:.2f} of the pictures)" for row in best.itertuples()]
    return f"Alone, {' and '.join(said)} tell classes apart best"


def accuracy_words(whole: pd.DataFrame, model: str) -> str:
    """The accuracy of one classifier at the first and the last scale and its place at either; `whole` has classifiers by scale."""
    ends = {scale: whole.loc[model, scale] for scale in (whole.columns[0], whole.columns[-1])}
    shares = ["all" if own == 1 else f"{own:.2f} of the" for own in ends.values()]
    said = [f"{share} pictures at scale {scale:g} ({ranked(whole[scale], model)})" for share, scale in zip(shares, ends, strict=True)]
    return f"{model} names {' and '.join(said)}"


def ranked(accuracies: pd.Series, model: str) -> str:
    """The place of one classifier by its accuracy, and how many share it."""
    ahead, alike = (accuracies > accuracies[model] + NIL).sum(), (abs(accuracies - accuracies[model]) <= NIL).sum()
    return f"place {1 + ahead} of {len(accuracies)}{f', shared by {alike}' if alike > 1 else ''}"


def tried_by_all(errors: pd.DataFrame, *, classes: list[str]) -> pd.DataFrame:
    """The errors at the timesteps at which every class was tried, that is before any was dropped: image, timestep, loss, error."""
    tried = errors.groupby([*tables.KEY, "timestep"])["candidate"].transform("size") == len(classes)
    return errors[tried].melt([*tables.KEY, "candidate", "timestep"], var_name="loss", value_name="error")


def spaces(errors: pd.DataFrame, signal: Float[np.ndarray, "timesteps"], *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy with errors of the noise and with errors of v, per loss; `errors` is `tried_by_all`, `signal` abar of every timestep.

    The error of v is that of the noise times 1 / sqrt(abar), so only the weights of the timesteps differ.
    """
    power = errors["loss"].map({"l1": 0.5, "l2": 1.0})
    of_v = errors.assign(error=errors["error"] / signal[errors["timestep"]] ** power)
    both = pd.concat([errors.assign(space="noise"), of_v.assign(space="v")])
    return hits_by(both, ["loss", "space"], settings=settings)


def hits_by(errors: pd.DataFrame, columns: list[str], *, settings: Bootstrap) -> pd.DataFrame:
    """Accuracy per value of some columns where the candidate with the smallest mean error answers, with intervals."""
    rows = []
    for values, part in errors.groupby(columns):
        means = part.groupby([*tables.KEY, "candidate"])["error"].mean().reset_index()
        first = means.loc[means.groupby(tables.KEY)["error"].idxmin()]
        hits = (first["candidate"] == first["class"]).to_numpy()
        rows.append(dict(zip(columns, values, strict=True)) | bootstrap.share(hits, first, settings=settings))
    return pd.DataFrame(rows)


def margins(answers: pd.DataFrame, chosen: pd.DataFrame, *, settings: Denoiser) -> pd.DataFrame:
    """Mean margin per model, shift and scale, with intervals."""
    rows = tables.trajectories(answers, settings.shifts).merge(chosen)
    found = []
    for (model, shift, scale), part in rows.groupby(["model", "shift", "scale"]):
        place = {"model": model, "shift": shift, "scale": scale}
        found.append(place | bootstrap.mean(part["margin"], part, settings=settings.bootstrap))
    return pd.DataFrame(found)


def published(errors: Shares, printed: pd.DataFrame, *, reference: str) -> pd.DataFrame:
    """The paper's average drops and their differences beside ours: ours with n and interval, published, difference, rule, verdict.

    `printed` has the columns model (the paper's), counterpart (ours) and drop; the first row is the diffusion classifier. The drops are
    levels over other scales and have no direction; the differences are seen from 0.
    """
    drop = axes.average_drop(errors).query("shift == @accuracy.ALL").set_index("model")
    ahead = lead(errors, reference=reference).query("shift == @accuracy.ALL").set_index("model")
    known = printed[printed["counterpart"].isin(drop.index)]
    rows = [{"what": f"average drop, {row.model}", **drop.loc[row.counterpart], "published": row.drop} for row in known.itertuples()]
    first, others = known.iloc[0], known.iloc[1:]
    for row in others.itertuples():
        rows.append({"what": f"{first['model']} minus {row.model}", **ahead.loc[row.counterpart], "published": first["drop"] - row.drop})
    table = pd.DataFrame(rows)[["what", "n", "estimate", "low", "high", "published"]]
    return verdicts.beside(table, table["published"], null=[None] * len(known) + [0.0] * len(others))
