# imports
import json

import pandas as pd

from cnslib import paths, roster, units, world
from cnslib.recipes import Zoo

# train
settings = Zoo(classifiers, batch_size, learning_rate, average, quality_images, seed)
run = roster.Run(device=device)
entries = {member.name: roster.build(member, run, quality_images=quality_images) for member in roster.plain(settings)}
units.write_bytes(paths.MODELS / "labels.json", json.dumps(list(world.CLASSES)).encode())

# table
rows = {name: {"weights": entry["parameters"], "steps": entry["steps"], **entry["quality"]["accuracy"]} for name, entry in entries.items()}
pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier").round(3)
