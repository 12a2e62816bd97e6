# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from statsmodels.stats.proportion import confint_proportions_2indep

from cnslib import encoders, evaluation, paths, plots, stats, tables
from cnslib.classifiers import load
from cnslib.config import UNSHIFTED, Evaluation, identifier

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Evaluation(classifiers, batch_size, preprocessing)

# roster
names = encoders.read_labels(labels)
roster = [load(name, source, names, device, preprocessing=preprocessing).describe() for name, source in classifiers.items()]
evaluation.write_sizes(roster, layout.artifacts("evaluation") / "models.csv")
wanted = ["parameters", "input_size", "interpolation", "crop_mode", "crop_pct", "mean", "std"]
pd.DataFrame(roster).set_index("model").reindex(columns=wanted)

# evaluate
inputs = {"scales": scales, "seeds": seeds, "labels": names, "settings": settings, "device": device}
images = layout.artifacts("generation")
answered = evaluation.evaluate(images, shifts, classes, **inputs, folder=layout.artifacts("evaluation"))
predictions = pd.concat([tables.read(path, tables.predictions) for path in answered.values()], ignore_index=True)
predictions.groupby(["model", "scale"]).size().unstack("scale")

# catalog
tested = evaluation.evaluate_catalog(
    layout.locate(catalog), classes, labels=names, settings=settings, device=device, folder=layout.artifacts("evaluation") / "heldout"
)
heldout = pd.concat([tables.read(path, tables.predictions) for path in tested.values()], ignore_index=True)
exams = {"catalog, held out": heldout, "generated, scale 0": predictions[predictions["shift"] == UNSHIFTED]}
marked = pd.concat([answers.assign(exam=exam, right=answers["top1"] == answers["class"]) for exam, answers in exams.items()])
shares = {key: stats.independent_share(part, confidence=0.95) for key, part in marked.groupby(["exam", "model"])["right"]}

# catalog-figure
known = pd.DataFrame(shares).T.rename_axis(["exam", "model"]).reset_index()
figure, axes = plt.subplots(figsize=(5.5, 0.8 + 0.25 * len(classifiers)))
plots.estimate_pairs(axes, known, y="model", hue="exam", label="accuracy")
sizes = [f"{exam}: {plots.extent(part['n'].astype(int))}" for exam, part in known.groupby("exam")]
plots.caption(figure, f"{'; '.join(sizes)}; lines: 95% Wilson; before filtering")
plots.save(figure, layout.figures / "evaluation_catalog", known)

# catalog-reading
real, drawn = (known[known["exam"] == exam].set_index("model") for exam in exams)
hits = [(table["n"] * table["estimate"]).round().astype(int) for table in (real, drawn)]
low, high = confint_proportions_2indep(hits[0], real["n"], hits[1], drawn["n"], method="newcomb", alpha=0.05)
cost = pd.DataFrame({"cost": real["estimate"] - drawn["estimate"], "low": low, "high": high}).sort_values("cost")
least, most = (f"{row['cost']:.2f} ({row['low']:.2f} to {row['high']:.2f}) for *{row.name}*" for _, row in cost.iloc[[0, -1]].iterrows())
above = (cost["low"] > 0).sum()
Markdown(f"The generator costs between {least} and {most}; for {above} of {len(cost)} classifiers the whole interval is above zero.")

# example
full = tables.trajectories(predictions, shifts).assign(wrong=lambda t: t["top1"] != t["class"])
shift, garment, seed = (full.groupby(tables.TRAJECTORY)["wrong"].mean() - 0.5).abs().idxmin()
shards = [tables.read(images / f"{identifier(name)}.parquet", tables.images) for name in (UNSHIFTED, shift)]
frames = tables.trajectories(pd.concat(shards), [shift]).query("`class` == @garment and seed == @seed").sort_values("scale")
strip = tables.pictures(frames, shift)[None]
said = full.query("shift == @shift and `class` == @garment and seed == @seed")

# example-figure
heights = {"height_ratios": [1.2, 0.35 * len(classifiers)]}
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 1.4 + 0.35 * len(classifiers)), gridspec_kw=heights, layout="constrained")
plots.contact_sheet(above, strip, rows=[f"{garment}, {shift}"], columns=[str(scale) for scale in scales])
wide = {column: said.pivot(index="model", columns="scale", values=column) for column in ("probability", "top1")}
sns.heatmap(wide["probability"], annot=wide["top1"], annot_kws={"size": 8}, fmt="", vmin=0, vmax=1, cmap="crest_r", ax=below, cbar=False)
below.set(xlabel="slider scale", ylabel="")
plots.caption(figure, "words: the class named; colour: probability of the true class, from 0, dark, to 1, light")
plots.save(figure, layout.figures / "evaluation_example", said[["model", "scale", "top1", "probability"]])

# margin
quartiles = full.groupby(["model", "shift", "scale"])["margin"].quantile([0.25, 0.5, 0.75]).unstack()
quartiles = quartiles.set_axis(["low", "estimate", "high"], axis=1).reset_index()
curves = quartiles[quartiles["model"].isin(shown)]
figure = plots.panels(curves, plots.estimate_lines, columns=5, x="scale", hue="model", label="logit margin")
plots.caption(figure, f"median over {len(classes) * seeds} images per scale; bands: middle half of the images; above 0 the answer is right")
plots.save(figure, layout.figures / "evaluation_margin", quartiles)

# mistakes
wrong = full[full["wrong"] & (full["scale"] == max(scales))]
answers = pd.crosstab(wrong["shift"], wrong["top1"], normalize="index").reindex(columns=names, fill_value=0.0)
figure, axes = plt.subplots(figsize=(6, 0.6 + 0.4 * len(shifts)))
sns.heatmap(answers, annot=len(names) <= 20, fmt=".2f", vmin=0, cmap="flare", ax=axes, cbar=False)
axes.set(xlabel="wrong answer", ylabel="")
plots.caption(figure, f"{len(wrong)} wrong answers of {len(classifiers)} classifiers at scale {max(scales)}; before filtering")
plots.save(figure, layout.figures / "evaluation_mistakes", answers.reset_index().melt("shift", value_name="share"))

# unshifted
clean_table = drawn.drop(columns="exam").astype(float)
clean_table.round(3)

# paper
published = pd.read_csv(paths.PUBLISHED / "accuracy.csv").query("scale == 0")["accuracy"]
ours = clean_table["estimate"].agg(["mean", "min", "max"])
comparison = pd.DataFrame({"ours": ours, "published": published.agg(["mean", "min", "max"])})
comparison["difference"] = comparison["ours"] - comparison["published"]
comparison["verdict"] = np.where(comparison["difference"].abs() <= 0.1, "close", "differs")
comparison.round(3)

# answer
heavy = 1 - full[full["scale"] == max(scales)]["wrong"].mean()
text = f"{len(classifiers)} classifiers name {real['estimate'].mean():.0%} of the catalog's held-out garments"
text += f", {drawn['estimate'].mean():.0%} of generated ones, and {heavy:.0%} at scale {max(scales)}"
answer.update(Markdown(f"**{text}, before we set aside the pictures that lost their class.**"))

# outputs
accuracies = {"accuracy_unshifted": drawn, "accuracy_heldout": real}
metrics = {name: stats.records(table.reset_index(), "model") for name, table in accuracies.items()}
tables.write_metrics(layout.metrics / "evaluation.json", metrics)
print(f"{len(predictions)} rows, {len(answered)} tables, preprocessing {preprocessing}")
