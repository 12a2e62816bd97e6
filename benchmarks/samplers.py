"""Generation, fast sampler: DDIM 100 by a call per shift and scale against UniPC 20. `python benchmarks/samplers.py --seeds 6`.

What the classifiers conclude is compared on the ablation's answers to two seeds, and on those to further seeds, drawn once.
"""

import argparse
import shutil
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
from generation import NAME, SEED, Drawing

from cnslib import ablation, adapters, classifiers, encoders, generation, health, models, parameters, paths
from cnslib.studies import Ablation

FAST = "UniPC 20"
TAU, WITHIN = 0.95, 0.95  # of the order, and share of accuracies within the reference's intervals
LEVELS = 10  # mean grey levels between the pictures; those of another seed are 40 away
SPLITS = 200


class Contestants(Drawing):
    """The pictures of one class and seed under the ablation's shifts by either procedure."""

    def __init__(self, study: Ablation):
        """The reference's steps for the plain calls, and the sharing sampler with the fast scheduler."""
        super().__init__()
        self.settings = replace(self.settings, steps=study.samplers[study.reference]["steps"])
        self.files = {shift: self.files[shift] for shift in study.shifts}
        self.fast = study.samplers[FAST]

    def ours(self) -> np.ndarray:
        """As the ablation draws: what shifts and scales share is drawn once, all scales in one batch, by few steps."""
        stepper = ablation.steppers(self.pipe, {FAST: self.fast}, settings=self.settings)[FAST]
        plain, found = stepper.unshifted(NAME, SEED).numpy(), []
        for file in self.files.values():
            with adapters.loaded(self.pipe, file):
                found.append(np.concatenate([plain, stepper.shifted(NAME, SEED, self.base.scales[1:]).numpy()]))
        return np.array(found)

    def evaluations(self, shifts: int) -> str:
        """UNet evaluations of single samples by either procedure."""
        shape = {"shifts": shifts, "images": 1, "scales": len(self.base.scales)}
        before = generation.evaluations(self.settings, **shape)["separate"]
        after = generation.evaluations(replace(self.settings, steps=self.fast["steps"]), **shape)["shared"]
        return f"{shifts} shifts: {before} and {after}, {before / after:.2f} times"


def answers(study: Ablation, seeds: int) -> pd.DataFrame:
    """Every classifier's answer to so many seeds by every sampler of the ablation; draws those that neither it nor a run before drew."""
    sections = parameters.load(paths.resolve("params.yaml"))
    base, asked, layout = sections["base"], sections["evaluation"], paths.Layout(sections["base"].out)
    folder, tokens = paths.resolve("build/samplers"), layout.artifacts("inversion")
    for source in layout.artifacts("ablation").glob("[al]*/*"):
        (folder / source.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / source.parent.name)
    pipe = models.load_pipeline(paths.resolve(base.pipeline), base.device)
    models.load_tokens(pipe, tokens, base.classes)
    jury = {"labels": encoders.read_labels(base.labels), "device": base.device, "preprocessing": asked.preprocessing}
    jurors = [classifiers.load(name, source, **jury) for name, source in asked.classifiers.items()]
    judge = health.Judge(encoders.Clip(base.clip), encoders.ImageEncoder(base.image_encoder))
    steppers = ablation.steppers(pipe, study.samplers, settings=sections["generation"])
    origin = models.origin(paths.resolve(base.pipeline), tokens, base.classes)
    bench = ablation.Bench(steppers, study.reference, origin, judge, jurors, layout.artifacts("sliders"), folder)
    return ablation.compare(bench, study.shifts, base.classes, scales=base.scales, seeds=seeds)[0]


def main() -> int:
    """The measured ratio; then whether the fast pictures lead to the same order and the same accuracies. 1 where they do not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="of the comparison; each beyond 2 takes 7 minutes of a core, once")
    study = parameters.load(paths.resolve("params.yaml"))["ablation"]
    answers(study, parser.parse_args().seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
