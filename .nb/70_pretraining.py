# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd

from cnslib import manifest, paths, roster
from cnslib.recipes import Pretraining

settings = Pretraining(network, objectives, classifiers, finetuned, probe, batch_size, learning_rate, average, quality_images, seed)

# train
run = roster.Run(device=device)
entries = {member.name: roster.build(member, run, quality_images=quality_images) for member in roster.pretrained(settings)}

# collapse
tested = {name: entry["quality"] for name, entry in entries.items() if "neighbour_accuracy" in entry["quality"]}
trained, untrained = (
    pd.DataFrame({name: quality[key] for name, quality in tested.items()}).T
    for key in ("neighbour_accuracy", "neighbour_accuracy_untrained")
)
known = trained.astype({"n": int}).join(untrained.drop(columns="n").add_prefix("untrained: ")).rename_axis("pre-trained for")
cases = [known["low"] > known["untrained: high"], known["high"] < known["untrained: low"]]
known.assign(learned=np.select(cases, ["yes", "it unlearned"], "undecided")).round(3)

# table
table = roster.table(manifest.read(paths.MODELS))
table.round(3)

# answer
same = table[table["axis"] == "pre-training"]
best, worst = (same.loc[same["accuracy"] == bound, "recipe"].iloc[0] for bound in (same["accuracy"].max(), same["accuracy"].min()))
text = f"{len(table)} classifiers know between {table['accuracy'].min():.0%} and {table['accuracy'].max():.0%} of the held-out garments"
answer.update(Markdown(f"**{text}. With one and the same backbone the best past is {best}, the worst is {worst}.**"))
