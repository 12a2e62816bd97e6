# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

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
table = pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier")
table.round(3)

# answer
best, worst = (table.loc[name] for name in (table["estimate"].idxmax(), table["estimate"].idxmin()))
said = [f"{row.name}, {row['estimate']:.0%} ({row['low']:.0%} to {row['high']:.0%})" for row in (best, worst)]
text = f"{len(table)} classifiers of {table['weights'].min():,} to {table['weights'].max():,} weights"
answer.update(Markdown(f"**{text}. Of {best['n']:,.0f} held-out garments most are named by {said[0]}, and fewest by {said[1]}.**"))
