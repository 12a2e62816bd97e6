"""Settings of the smallest segmentation, and the key of one image."""

import dataclasses

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap

SETTINGS = dataclasses.replace(
    read.load(paths.resolve("params.yaml"))["segmentation"],
    **{
        "encoder": "data/models/classifiers/resnet_xs",
        "runs": 2,
        "steps": 2,
        "batch_size": 2,
        "images": 1,
        "severities": [0.0, 1.0],
        "bootstrap": Bootstrap(50, 0.95, 1, "same classes"),
    },
)


def key(scenario=UNSHIFTED, name="trouser", seed=0, severity=0.0) -> dict:
    return dict(zip(tables.KEY, (scenario, name, seed, severity), strict=True))
