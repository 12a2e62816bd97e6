import numpy as np
from tiny_garments import garments
from tiny_settings import resampled

from cnslib.core.settings.sections import Oodcv
from cnslib.world import scenes

CLASSES = ["sneaker", "ankle boot"]
PICTURES = {"shifts": ["heavy snow", "heavy fog"], "scales": [0.0, 1.0, 3.0], "seeds": 1, "start_fraction": 0.85, "severities": 2}
PICTURES |= {"unknown": "a picture of a {name}", "reference_images": 4, "ladder_images": 2, "training_images": 2, "validation_images": 1}
LEARNING = {"epochs": 3, "patience": 1, "batch_size": 2, "learning_rate": 1e-3, "rotation": 15.0, "zoom": 1.2}
SETTINGS = Oodcv(bootstrap=resampled(10), seed=1, root="", networks={"one": "", "two": ""}, **PICTURES, **LEARNING)


def plentiful(_folder=None, _pool=None) -> scenes.Garments:
    few = garments()
    return scenes.Garments(few.grey.repeat(10, 1, 1), np.tile(few.labels, 10))
