# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import itertools

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import alignment, encoders, filtering, oracles, paths, plots, stats, tables
from cnslib.config import Filtering

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Filtering(recall=recall, passes=passes, resamples=resamples, confidence=confidence, seed=seed)

# align
names = encoders.read_labels(labels)
clip_model, dino = encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device)
judges = alignment.Judges(clip_model, dino, oracles.load(oracle, labels=names, device=device))
images, folder = layout.artifacts("generation"), layout.artifacts("filtering")
aligned = alignment.align(images, shifts, judges=judges, folder=folder / "alignment")
expected = itertools.product(shifts, classes, range(1, seeds + 1), scales)
tables.complete(aligned, expected, tables.KEY, "alignments").groupby("scale")[list(alignment.DETECTORS)].mean().round(3)

# labels
scores = aligned.assign(oracle_ooc=filtering.out_of_class(aligned["class_probability"], labels=len(names)))
labelled = scores[filtering.started_in_class(scores)]
outside = filtering.outside_shares(labelled, settings=settings)
outside.pivot(index="shift", columns="scale", values="estimate").round(3)

# labels-count
count = labelled.groupby("shift")["oracle_ooc"].sum().reindex(shifts, fill_value=0)
without = ", ".join(count.index[count == 0]) or "none"
first = f"{len(labelled)} of {len(scores)} images are labelled, {count.sum()} of them out of class."
Markdown(f"{first} Shifts without a single out-of-class image: {without}.")

# thresholds
limits = filtering.thresholds(labelled, recall)
areas = filtering.areas(labelled, settings=settings)
areas.assign(threshold=areas["detector"].map(limits)).round(3)

# compare
quality = filtering.compare(labelled, settings=settings)
quality.pivot(index=["judged on", "rule"], columns="measure", values="estimate").loc[:, list(filtering.MEASURES)].round(3)

# answer
honest = quality[quality["judged on"] == "cross-validated"]
found = {rule: stats.records(part, "measure") for rule, part in honest.groupby("rule", sort=False)}
ours, baseline = found["ours"], found["clip"]
bad, good = (f"{r['estimate']:.1%} ({r['low']:.1%} to {r['high']:.1%}) of {r['n']}" for r in (ours["tpr"], ours["fpr"]))
alone = f"CLIP alone removes {baseline['tpr']['estimate']:.1%} and {baseline['fpr']['estimate']:.1%}."
found_any = f"The vote removes {bad} out-of-class images, and with them {good} good ones. {alone}"
answer.update(Markdown(f"**{found_any if ours['tpr']['n'] else 'No labelled image is out of class, so the filter drops nothing.'}**"))

# roc
curves = filtering.roc(labelled)
points = [{"name": rule} | {axis: of[axis]["estimate"] for axis in ("fpr", "tpr")} for rule, of in found.items()]
figure, axes = plt.subplots(figsize=(3.6, 3.4))
plots.roc_curves(axes, curves, hue="detector", points=pd.DataFrame(points).dropna())
axes.axhline(recall, color="grey", linewidth=0.6)
axes.set(xlabel="in-class images dropped (FPR)", ylabel="out-of-class images dropped (TPR)")
plots.caption(figure, f"{sum(labelled['oracle_ooc']):,} of {len(labelled):,} images out of class; grey: recall {recall:.0%}")
plots.save(figure, layout.figures / "filtering_roc", curves)

# sweep
sweep = filtering.sweep(scores, labelled, settings=settings)
titles = {"tpr": "out of class, dropped", "fpr": "in class, dropped", "kept": "trajectories kept"}

# sweep-figure
figure, axes = plt.subplots(figsize=(4.2, 3))
curves = sweep[sweep["measure"].isin(titles)].assign(measure=lambda table: table["measure"].map(titles))
plots.estimate_lines(axes, curves, x="passes", hue="measure", label="share")
axes.axvline(passes, color="grey", linewidth=0.6)
axes.set(xlabel="tests that an image must pass", xticks=sorted(curves["passes"].unique()))
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
plots.caption(figure, f"{plots.extent(curves['n'])}; bands: {confidence:.0%} bootstrap over (class, seed); grey: our rule")
plots.save(figure, layout.figures / "filtering_passes", curves)

# keep
verdict = filtering.keeps(filtering.rules(passes)["ours"], scores, limits)
scores["keep"] = filtering.whole(scores, verdict)
kept = filtering.kept_trajectories(scores)
kept_share = filtering.kept_share(scores, scores["keep"], settings=settings)
counts = {"images dropped": (~verdict).groupby(scores["shift"]).mean(), "trajectories kept": kept["shift"].value_counts()}
for when, part in {"before": scores, "after": scores[scores["keep"]]}.items():
    counts[f"out of class {when}"] = part.groupby("shift")["oracle_ooc"].mean()
pd.DataFrame(counts).reindex(shifts).round(3)

# scale-figure
kinds = filtering.outcomes(scores, verdict)
shares = pd.crosstab([scores["shift"], scores["scale"]], kinds, normalize="index")
tidy = shares.reindex(columns=["caught", "lost", "missed"], fill_value=0.0).melt(var_name="outcome", value_name="share", ignore_index=False)
grid = sns.relplot(tidy.reset_index(), x="scale", y="share", hue="outcome", col="shift", col_wrap=4, kind="line", marker="o", height=2)
grid.set_titles("{col_name}")
plots.caption(grid.figure, f"n = {len(classes) * seeds} images per shift and scale; out of class: caught, missed; in class: lost")
plots.save(grid.figure, layout.figures / "filtering_outcomes", tidy.reset_index())

# look
order, last = ["kept", "lost", "missed", "caught"], scores[scores["scale"] == max(scales)]
shuffled = last.sample(frac=1, random_state=seed)
picked = {kind: shuffled[kinds[shuffled.index] == kind].head(8) for kind in order}
figure, axes = plt.subplots(figsize=(6.5, 3.4))
plots.contact_sheet(axes, alignment.gallery(images, picked, columns=8), rows=order, columns=[""] * 8)
listed = pd.concat(picked, names=["outcome"]).reset_index("outcome")
plots.caption(figure, f"scale {max(scales):g}; kept and lost: in class; missed and caught: out of class")
plots.save(figure, layout.figures / "filtering_verdicts", listed[["outcome", *tables.KEY]])

# sensitivity
rows = {}
for (rule, chance), wanted in itertools.product([("below chance", len(names)), ("below one half", 2)], [0.8, 0.9, 0.95]):
    other = aligned.assign(oracle_ooc=filtering.out_of_class(aligned["class_probability"], labels=chance))
    part = other[filtering.started_in_class(other)]
    keep = filtering.cross_validated(filtering.rules(passes)["ours"], part, recall=wanted)
    record = filtering.quality(part, keep, settings=settings)
    rows[rule, wanted] = {"out of class": record["tpr"]["n"]} | {name: record[name]["estimate"] for name in filtering.MEASURES}
pd.DataFrame(rows).T.rename_axis(["label", "recall"]).round(3)

# paper
published = {"clip": [0.90, 0.36, 0.65], "ours": [0.88, 0.12, 0.88]}  # TPR, FPR, accuracy
table = honest[honest["rule"].isin(published)].set_index(["rule", "measure"])[["n", "estimate", "low", "high"]]
table["published (Table 2b)"] = published["clip"] + published["ours"]
table["difference"] = table["estimate"] - table["published (Table 2b)"]
inside = table["published (Table 2b)"].between(table["low"], table["high"])
judged = inside.map({True: "within our interval", False: "differs"}).where(table["n"] > 0, "nothing to judge")
table.assign(verdict=judged).round(3)

# outputs
every = {"ooc_share": scores["scale"] >= 0, "ooc_share_kept": scores["keep"]}
shares = {name: filtering.share(scores, scores["oracle_ooc"], of, settings=settings) for name, of in every.items()}
biased = quality[quality["judged on"] == "same labels"].groupby("rule")
shares |= {"kept_share": kept_share, "same_labels": {rule: stats.records(part, "measure") for rule, part in biased}}
tables.write_metrics(layout.metrics / "filtering.json", found | shares)
tables.write(scores[list(tables.scores.columns)], folder / "scores.parquet", tables.scores)
tables.write(kept, folder / "kept.parquet", filtering.kept_schema)
print(f"{len(scores)} scores, {len(kept)} of {len(scores) // len(scales)} trajectories kept")
