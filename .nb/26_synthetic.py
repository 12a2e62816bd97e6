# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import encoders, paths, plots, stats, synthetic, tables, world
from cnslib.analyses import Synthetic
from cnslib.synthetic import BEFORE, CATALOG, MIXED, REAL, STYLES

# settings
plots.use_style()
layout = paths.Layout(out)
training = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "average": average}
exam_settings = {"style_images": style_images, "lowest": lowest}
settings = Synthetic(resamples, confidence, seed, network=network, share=share, runs=runs, **training, **exam_settings)
names = encoders.read_labels(labels)

# exam
heldout = world.garments(paths.GARMENTS, "heldout")
pictures = tables.read(layout.locate(catalog), tables.catalog)
exam = synthetic.exams(pictures, heldout, classes, settings=settings)
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
stock = synthetic.generated(layout.artifacts("generation"), kept, labels=names)
print(f"{len(stock.label):,} generated images of {len(kept)} kept trajectories to train on")
exam.table.groupby("exam").agg(pictures=("seed", "size"), shifts=("shift", "nunique"))

# samples
rng = np.random.default_rng(seed)
styled = np.flatnonzero(exam.table["exam"] == STYLES)
drawn, asked = rng.choice(len(stock.label), 10, replace=False), np.sort(rng.choice(styled, 10, replace=False))
figure, axes = plt.subplots(figsize=(7, 1.7))
sheet = np.stack([stock.pictures[drawn], exam.pictures[asked]])
plots.contact_sheet(axes, sheet, rows=["generated", "style exam"], columns=[""] * 10)
plots.save(figure, layout.figures / "synthetic_samples", exam.table.iloc[asked])

# runs
course = synthetic.Course(settings, stock, exam, names, layout.root / "checkpoints" / "synthetic", device)
replies = synthetic.outcome(course, folder=layout.artifacts("synthetic"))
accuracies = synthetic.accuracies(replies, confidence=confidence)
accuracies.set_index(["exam", "arm"]).round(3)

# figure
figure, panels = plt.subplots(1, 2, figsize=(7, 1.5), sharey=True, layout="constrained")
for axes, (exam_name, part) in zip(panels, accuracies.groupby("exam"), strict=True):
    before = part.loc[part["arm"] == BEFORE, "estimate"].iloc[0]
    plots.estimate_dots(axes, part, y="arm", label="accuracy", reference=before)
    axes.set_title(exam_name)
plots.caption(figure, f"{runs} runs per arm; lines: {confidence:.0%} t interval over runs; Wilson for the one not fine-tuned, dotted")
plots.save(figure, layout.figures / "synthetic_accuracy", accuracies)

# paired
gains = synthetic.gains(replies, by=["exam"], confidence=confidence).set_index("exam")
pictures_say = synthetic.over_garments(replies, first=MIXED, second=REAL, settings=settings).set_index("exam")
training_alone = synthetic.over_garments(replies, first=REAL, second=BEFORE, settings=settings).set_index("exam")
kinds = {"added, over runs": gains, "added, over garments": pictures_say, "by training alone": training_alone}
pd.concat(kinds, names=["difference"]).round(3)

# styles
by_style = synthetic.gains(replies[replies["exam"] == STYLES], by=["shift"], confidence=confidence)
eaten = kept["shift"].value_counts().rename("trajectories").reindex(by_style["shift"]).fillna(0).astype(int)
figure, axes = plt.subplots(figsize=(4.5, 0.8 + 0.22 * len(by_style)))
plots.estimate_dots(axes, by_style, y="shift", label="accuracy, half generated minus real", reference=0.0)
plots.caption(figure, f"n = {len(classes) * style_images} garments per style, {runs} runs; lines: {confidence:.0%} t interval over runs")
plots.save(figure, layout.figures / "synthetic_styles", by_style)
by_style.set_index("shift").join(eaten).round(3)

# paper
table6 = synthetic.table6(replies, paths.PUBLISHED / "cns_table6.csv", settings=settings)
table6.set_index("exam").round(3)

# answer
text = {name: f"{row['estimate']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})" for name, row in gains.iterrows()}
alone = {name: f"{row['estimate']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})" for name, row in training_alone.iterrows()}
first = f"Over {runs} paired runs, generated images in half of each batch change accuracy on garments in rendered styles by {text[STYLES]}"
second = f"and on the held-out catalog by {text[CATALOG]}, compared with as many steps on real images alone"
answer.update(Markdown(f"**{first} {second}. Those steps by themselves change it by {alone[STYLES]} and {alone[CATALOG]}.**"))

# outputs
metrics = {name: stats.records(part, "arm") for name, part in accuracies.groupby("exam")}
differences = {"added": gains, "added_over_garments": pictures_say, "training_alone": training_alone}
metrics |= {name: stats.records(table.reset_index(), "exam") for name, table in differences.items()}
metrics["styles"] = stats.records(by_style, "shift")
tables.write_metrics(layout.metrics / "synthetic.json", metrics)
print(f"metrics/synthetic.json: {', '.join(metrics)}")
