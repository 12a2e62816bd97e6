"""Classes of the smallest experiments, and answers of models whose accuracy under each scenario is known."""

import pandas as pd

from cnslib.core.settings.method import Bootstrap
from cnslib.core.settings.studies import Scenarios
from cnslib.studies.scenarios import score
from cnslib.world import scenes

LABELS = list(scenes.CLASSES)
CLASSES = ["sneaker", "ankle boot"]
SETTINGS = Scenarios(
    bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes"), seed=1, classifiers={"x": "lite:0"},
    cutouts=2, backbones={"x": "x"}, images=1,
    severities=[0.0, 1.0], photo_severities=[0.0, 1.0], drawing_steps=1, guidance=1.0, training_images=1, steps=1, checks=1,
    batch_size=1, learning_rate=0.1, average=0.9,
)  # fmt: skip


def answers(shares, objects=20):
    """Replies of models whose first `share` of the objects is right under each scenario."""
    rows = [
        (model, name, "bag", number, float(name != "unshifted"), "bag" if number < share * objects else "shoe")
        for model, own in shares.items()
        for name, share in own.items()
        for number in range(objects)
    ]
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])


def found(shares):
    """The accuracies of such answers, under the scenarios of the first model."""
    return score.accuracies(answers(shares), next(iter(shares.values())), settings=SETTINGS.bootstrap)
