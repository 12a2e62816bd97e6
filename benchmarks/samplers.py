"""Generation, fast sampler: DDIM 100 by a call per shift and scale against UniPC 20. `python benchmarks/samplers.py [--seeds 3]`.

What the classifiers conclude is compared on the ablation's answers to two seeds, and on those to further seeds, drawn once.
"""

import argparse
import itertools
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import turns
import xarray as xr
from generation import NAME, Drawing
from jaxtyping import Float

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.sections import Ablation
from cnslib.method import generation, health
from cnslib.method.sliders import slider_path
from cnslib.models import classifiers, encoders, text_to_image
from cnslib.stats import accuracy, ranking
from cnslib.stats.accuracy import ALL
from cnslib.stats.bootstrap import percentiles
from cnslib.studies import ablation

FAST = "UniPC 20"  # the row's, of the ablation's samplers
TAU, WITHIN = 0.95, 0.95  # of the order, and share of accuracies within the reference's intervals
LEVELS = 10  # mean grey levels between the pictures; those of another seed are 33 away
SPLITS = 200


class Contestants(Drawing):
    """The pictures of one class under the ablation's shifts by either procedure."""

    def __init__(self, study: Ablation, device: str = "cpu"):
        """The reference's steps for the plain calls, and the sharing sampler with the fast scheduler."""
        super().__init__(device)
        self.settings = replace(self.settings, steps=study.samplers[study.reference].steps)
        folder = paths.Layout(self.base.out).artifacts("sliders")
        self.files = {shift: slider_path(folder, shift, NAME) for shift in study.shifts}
        self.study = study

    def ours(self) -> np.ndarray:
        """By the option "fast": sliders merged, what shifts and scales share drawn once, few steps of the row's sampler."""
        return self.merged("fast")

    def evaluations(self, shifts: int) -> str:
        """UNet evaluations of single samples by either procedure."""
        shape = {"shifts": shifts, "images": 1, "scales": len(self.base.scales)}
        before = generation.evaluations(self.settings, **shape)["separate"]
        after = generation.evaluations(generation.SAMPLING_MODES["fast"].settings(self.settings), **shape)["shared"]
        return f"{shifts} shifts: {before} and {after}, {before / after:.2f} times"


def answers(study: Ablation, seeds: int) -> pd.DataFrame:
    """Every classifier's answer to so many seeds by every sampler of the ablation; draws those that neither it nor a run before drew."""
    sections = read.load(paths.resolve("params.yaml"))
    base, asked, layout = sections["base"], sections["evaluation"], paths.Layout(sections["base"].out)
    folder, tokens = paths.resolve(f"build/samplers/{seeds}"), layout.artifacts("inversion")
    for source in layout.artifacts("ablation").glob("[al]*/*"):
        (folder / source.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / source.parent.name)
    pipe = text_to_image.load_pipeline(paths.resolve(base.pipeline), base.device)
    text_to_image.load_tokens(pipe, tokens, base.classes)
    options = {"labels": encoders.read_labels(base.labels), "device": base.device, "preprocessing": asked.preprocessing}
    chosen = [classifiers.load(name, source, **options) for name, source in asked.classifiers.items()]
    judge = health.Judge(encoders.Clip(base.clip), encoders.ImageEncoder(base.image_encoder))
    steppers = ablation.steppers(pipe, study.samplers, settings=sections["generation"])
    origin = text_to_image.origin(paths.resolve(base.pipeline), tokens, base.classes)
    bench = ablation.Bench(steppers, study.reference, origin, judge, chosen, layout.artifacts("sliders"), folder)
    return ablation.compare(bench, study.shifts, base.classes, scales=base.scales, seeds=seeds)[0]


def errors(wrong: xr.DataArray, seeds: Sequence[int] | np.ndarray) -> Float[np.ndarray, "models"]:
    """Error rate of every model over the pictures of some seeds at scales above 0."""
    return wrong[wrong["seed"].isin(seeds)][..., 1:].mean(["trajectory", "scale"]).to_numpy()


def by_size(sampled: dict[str, xr.DataArray], own: xr.DataArray, reference: str, seeds: int) -> pd.DataFrame:
    """Kendall's tau with the reference's order for fewer seeds, the mean over all choices of them: one row per number of seeds.

    The last column is what other garments change at the same size: two disjoint sets of the benchmark's own pictures, by one sampler.
    """
    generator, everyone, rows = np.random.default_rng(0), np.unique(own["seed"]).tolist(), {}
    for count in range(1, seeds + 1):
        chosen = list(itertools.combinations(range(1, seeds + 1), count))
        pairs = {name: [(errors(one, few), errors(sampled[reference], few)) for few in chosen] for name, one in sampled.items()}
        drawn = [generator.permutation(everyone)[: 2 * count] for _ in range(SPLITS)] if 2 * count <= len(everyone) else []
        pairs["other garments"] = [(errors(own, both[:count]), errors(own, both[count:])) for both in drawn]
        del pairs[reference]
        rows[count] = {
            name: ranking.kendall(*map(np.array, zip(*own_pairs, strict=True))).mean() for name, own_pairs in pairs.items() if own_pairs
        }
    return pd.DataFrame(rows).T.rename_axis("seeds")


def within(fast: xr.DataArray, reference: xr.DataArray) -> pd.Series:
    """How many accuracies, one per model, shift and scale, lie in the reference's interval; how many paired differences exclude 0."""
    both = accuracy.accuracy(fast).merge(accuracy.accuracy(reference), on=["shift", "model", "scale"], suffixes=("", "_reference"))
    low, high = percentiles((fast - reference)[1:].to_numpy(), fast["confidence"].item())
    both["differs"] = ((low > 0) | (high < 0)).ravel()
    shifted = both[
        (both["shift"] != ALL) & ((both["scale"] > 0) | (both["shift"] == fast["shift"].to_numpy()[0]))
    ]  # unshifted pictures count once
    inside = shifted["estimate"].between(shifted["low_reference"], shifted["high_reference"])
    overlap = (shifted["low"] <= shifted["high_reference"]) & (shifted["low_reference"] <= shifted["high"])
    return pd.Series(
        {"accuracies": len(shifted), "within": inside.sum(), "overlapping": overlap.sum(), "differing": shifted["differs"].sum()}
    )


def compare(study: Ablation, seeds: int) -> bool:
    """Prints how the classifiers' order and accuracies change with the sampler; whether the fast one's stay as the reference's."""
    found = answers(study, seeds)
    sampled = {name: accuracy.wrong_predictions(part.drop(columns="sampler")) for name, part in found.groupby("sampler", sort=False)}
    shares = samplers.by_sampler(found, settings=study.bootstrap)
    orders = pd.DataFrame(samplers.orders(shares, study.reference)).T
    rates = {name: shares[0].sel(sampler=name, drop=True) for name in sampled}
    counts = pd.DataFrame({name: within(rates[name], rates[study.reference]) for name in orders.index}).T
    predictions = tables.read_top1(
        sorted(paths.Layout(read.load(paths.resolve("params.yaml"))["base"].out).artifacts("evaluation").glob("*.parquet"))
    )
    own = accuracy.wrong_predictions(predictions[predictions["shift"].isin([*study.shifts, UNSHIFTED])])
    print(f"Kendall's tau with the order of {own.sizes['model']} classifiers by {study.reference}, n trajectories; their accuracies")
    print(orders.join(counts).round(3).to_string())
    print("tau by number of seeds per class, mean over all choices of them")
    print(by_size(sampled, own, study.reference, seeds).round(3).to_string())
    return bool(orders.loc[FAST, "estimate"] >= TAU and counts.loc[FAST, "within"] >= WITHIN * counts.loc[FAST, "accuracies"])


def main() -> int:
    """Whether the fast pictures lead to the same order and accuracies, then the measured ratio. 1 where they do not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="of the comparison; each beyond the ablation's takes minutes of a core, once")
    study = read.load(paths.resolve("params.yaml"))["ablation"]
    same = compare(study, parser.parse_args().seeds)
    print(f"conclusions: {'same' if same else 'NOT THE SAME'}; tau of {TAU} and {WITHIN:.0%} of the accuracies within are wanted")
    drawing = Contestants(study)
    notes = "UNet evaluations, " + "; ".join(drawing.evaluations(count) for count in (len(study.shifts), len(drawing.base.shifts)))
    contest = turns.Contest(f"generation by {FAST}", drawing.reference, drawing.ours, lambda a, b: np.abs(a.astype(int) - b).mean(), LEVELS)
    return turns.report(contest, notes=notes) or int(not same)


if __name__ == "__main__":
    sys.exit(main())
