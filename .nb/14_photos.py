# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import failure, imagenet, paths, photos, photoshow, plots, ranking, stamps, stats, tables
from cnslib.studies import Photos

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Photos(resamples, confidence, seed, classifiers=classifiers, reference=reference, cutouts=cutouts, severities=severities)
note = f"bands: {confidence:.0%} bootstrap over cut-outs"

# set
objects = photos.chosen(paths.PHOTOS, settings)
names = sorted({own.label for own in objects})
shared = set(names) & set(imagenet.paper_classes()["class"])
print(f"{len(objects)} cut-outs of {len(names)} classes; {len(shared)} of them are among the paper's 100")
stamps.mapping()["left_out"].str.split(":").str[0].replace("", "taken").value_counts().rename("stamps").to_frame()

# samples
sheet, places = photoshow.samples(objects, columns=11, seed=seed)
rows, columns = ([str(place) for place in range(1, count + 1)] for count in sheet.shape[:2])
figure, axes = plt.subplots(figsize=(7.5, 0.3 + 7.5 * len(rows) / len(columns)))
plots.contact_sheet(axes, sheet, rows=rows, columns=columns)
plots.caption(figure, f"all {len(objects)} cut-outs, unshifted")
plots.save(figure, layout.figures / "photos_samples", places)

# answers
files = photos.answer(shifts, settings=settings, device=device, folder=layout.artifacts("photos"))
predictions = pd.concat([tables.read(path, tables.predictions) for path in files.values()], ignore_index=True)
clean = photoshow.clean(predictions, settings=settings)
clean.round(3)

# mistakes
best = clean.query("measure == 'top-1'").set_index("model")["estimate"].idxmax()
missed = predictions.query("shift == 'unshifted' and model == @best and top1 != `class`")
missed[["class", "seed", "top1", "probability"]].round(2).reset_index(drop=True)

# strips
found = stats.outcomes(predictions)
strips, rows = photoshow.strips(objects, shifts, predictions, model=best, settings=settings)
figure, axes = plt.subplots(figsize=(6, 1.05 * len(shifts) + 0.4))
plots.contact_sheet(axes, strips, rows=(rows["shift"] + "\n" + rows["class"]).tolist(), columns=[str(value) for value in severities])
for row in np.flatnonzero(rows["failed"]):
    plots.frame_picture(axes, strips, row=row, column=severities.index(rows["failure_point"].iloc[row]))
plots.caption(figure, f"columns: severity; frame: failure point of {best}")
plots.save(figure, layout.figures / "photos_strips", rows)

# accuracy
errors, failures = stats.error_shares(found, settings=settings), stats.failure_shares(found, settings=settings)
accuracy = stats.accuracy(errors)
figure = plots.panels(accuracy, plots.accuracy_lines, columns=5, chance=1 / len(photos.labels()))
photoshow.rename_severity(figure)
plots.caption(figure, f"{plots.extent(errors.n)} trajectories; {note}; dotted: guessing")
plots.save(figure, layout.figures / "photos_accuracy", accuracy)

# mean
mean = stats.mean_accuracy(errors).query("shift == @stats.ALL").drop(columns=["shift", "model"])
steps = photoshow.steps(errors)
print(f"{(steps['high'] < 0).sum()} of {len(steps)} steps of the mean curve are falls, {(steps['low'] > 0).sum()} are rises")
mean.merge(steps.rename(columns={"estimate": "step", "low": "step_low", "high": "step_high"}), on=["scale", "n"], how="left").round(3)

# hardness
last = stats.mean_accuracy(errors).query("scale == @severities[-1] and shift != @stats.ALL")
figure, axes = plt.subplots(figsize=(5, 0.6 + 0.22 * len(shifts)))
plots.estimate_dots(axes, last, y="shift", label="mean accuracy at the last severity", reference=mean["estimate"].iloc[0])
plots.caption(figure, f"{plots.extent(last['n'])} trajectories; {note.replace('bands', 'lines')}; dotted: without a shift")
plots.save(figure, layout.figures / "photos_hardness", last)

# failure
survival = failure.curves(failures)
figure = plots.panels(survival, plots.survival_lines, columns=5)
photoshow.rename_severity(figure)
plots.caption(figure, f"{plots.extent(failures.n)} trajectories; {note}")
plots.save(figure, layout.figures / "photos_failure", survival)
median = failure.median_scale(failures)
median.pivot(index="shift", columns="model", values="estimate")

# rce
measures = {"CE": stats.corruption_error, "rCE": stats.relative_corruption_error}
ratios = pd.concat({name: measure(errors, reference=reference) for name, measure in measures.items()}, names=["measure"])
ratios = ratios.reset_index("measure").reset_index(drop=True)
print("left out:", ratios[~ratios["defined"] & (ratios["shift"] != stats.MEAN)][["measure", "shift"]].drop_duplicates().to_dict("records"))
print("most errors:", ratios.query("measure == 'CE' and shift == @stats.MEAN").set_index("model")["estimate"].idxmax())
figure = plots.panels(ratios.query("shift == @stats.MEAN"), plots.estimate_dots, by="measure", y="model", label="ratio", reference=1.0)
plots.caption(figure, f"{plots.extent(ratios.query('shift == @stats.MEAN')['n'])} trajectories; {note.replace('bands', 'lines')}")
plots.save(figure, layout.figures / "photos_rce", ratios)

# ranking
ranks = ranking.ranks(errors)
figure, axes = plt.subplots(figsize=(4.5, 2.6))
plots.rank_lines(axes, ranks[ranks["shift"] == stats.ALL])
axes.set_xlabel("severity")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.caption(figure, f"n = {errors.n[-1]:,} trajectories; {note}")
plots.save(figure, layout.figures / "photos_ranks", ranks)
ranking.pairs(errors).query("scale > 0").round(3)

# paper
photoshow.against_paper(errors).round(3)

# answer
top = clean.query("measure == 'top-1'").set_index("model").loc[best]
half = median[(median["shift"] != stats.ALL) & (median["model"] == best)]
broken = half[np.isfinite(half["estimate"])].sort_values("estimate")
drop = f"from {mean['estimate'].iloc[0]:.0%} to {mean['estimate'].iloc[-1]:.0%} on the mean of {len(shifts)} shifts"
named = f"{best} names {top['estimate']:.0%} ({top['low']:.0%} to {top['high']:.0%}) of the unshifted photographs right"
first = f"{named}; the accuracy of {len(classifiers)} classifiers falls {drop}"
where = f"{', '.join(f'{row.shift} at {row.estimate:g}' for row in broken.itertuples())}" or "no shift"
answer.update(Markdown(f"**{first}. Half of the objects are lost to {best} under {len(broken)} of {len(half)} shifts: {where}.**"))

# outputs
metrics = {f"clean_{kind.replace('-', '')}": stats.records(part, "model") for kind, part in clean.groupby("measure")}
metrics["mean_accuracy"] = stats.records(mean, "scale")
metrics["accuracy_last_severity"] = stats.records(accuracy.query("shift == @stats.ALL and scale == @severities[-1]"), "model")
metrics["mean_accuracy_last_severity"] = stats.records(last, "shift")
metrics |= {name: stats.records(part, "model") for name, part in ratios.query("shift == @stats.MEAN").groupby("measure")}
tables.write_metrics(layout.metrics / "photos.json", metrics)
print(f"metrics/photos.json: {', '.join(metrics)}")
