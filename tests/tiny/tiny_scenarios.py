import dataclasses

import pandas as pd
from tiny_settings import resampled

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.studies.scenarios import claims
from cnslib.world import scenes

LABELS = list(scenes.CLASSES)
CLASSES = ["sneaker", "ankle boot"]
RESAMPLED = resampled(200)
OUTLINED = dataclasses.replace(  # the smallest segmentation
    read.load(paths.resolve("params.yaml"))["segmentation"],
    encoder="data/models/classifiers/resnet_xs",
    **{"runs": 2, "steps": 2, "batch_size": 2, "images": 1, "severities": [0.0, 1.0], "bootstrap": RESAMPLED},
)


def predictions(shares, objects=20):
    rows = [
        (model, name, "bag", number, float(name != "unshifted"), "bag" if number < share * objects else "shoe")
        for model, own in shares.items()
        for name, share in own.items()
        for number in range(objects)
    ]
    return pd.DataFrame(rows, columns=["model", "shift", "class", "seed", "scale", "top1"])


def found(shares):
    return claims.accuracies(predictions(shares), next(iter(shares.values())), settings=RESAMPLED)
