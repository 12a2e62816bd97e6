# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import alignment, calibration, encoders, matching, models, paths, plots, stats, tables, weatherlabels

# imports-own
from cnslib import oodcv, oodcvclaims, oodcvfolder, oodcvimages, oodcvkept, oodcvplots
from cnslib.analyses import Oodcv
from cnslib.config import Filtering, Generation
from cnslib.earlystopping import School
from cnslib.generation import Sampler

# settings
plots.use_style()
layout = paths.Layout(out)
folder = layout.artifacts("oodcv")
grid = {"shifts": shifts, "scales": scales, "seeds": seeds, "start_fraction": start_fraction, "unknown": unknown}
grid |= {"reference_images": reference_images, "ladder_images": ladder_images, "severities": severities, "networks": networks}
training = {"training_images": training_images, "validation_images": validation_images, "epochs": epochs, "patience": patience}
training |= {"batch_size": batch_size, "learning_rate": learning_rate, "rotation": rotation, "zoom": zoom}
settings = Oodcv(resamples, confidence, seed, **grid, **training)

# reference
plan = oodcv.reference_plan(classes, settings=settings)
examples = plan.groupby("shift", sort=False).sample(8, random_state=seed, replace=True).sort_values(["shift", "scale"], ignore_index=True)
pictures = oodcv.rendered(oodcv.heldout(classes), examples, seed=seed)
kinds = list(examples["shift"].unique())
figure, axes = plt.subplots(figsize=(6, 0.75 * len(kinds)))
plots.contact_sheet(axes, pictures.reshape(len(kinds), 8, *pictures.shape[1:]), rows=kinds, columns=["light", *[""] * 6, "heavy"])
plots.save(figure, layout.figures / "oodcv_reference", examples)
plan.groupby("shift").agg(pictures=("scale", "size"), classes=("class", "nunique"))

# training
names = encoders.read_labels(labels)
school = School(settings, classes, names, layout.root / "checkpoints" / "oodcv", folder / "training", device)
history = school.histories()
lengths = history.groupby("model", sort=False).agg(epochs=("epoch", "max"))
lengths.join(history[history["best"]].set_index("model")[["epoch", "n", "accuracy"]].add_prefix("best ")).round(3)

# panel
judges = alignment.Judges(
    encoders.Clip(clip, device=device),
    encoders.ImageEncoder(image_encoder, device=device),
    encoders.Oracle(oracle, labels=names, device=device),
)
panel = oodcv.Panel(judges, school)
reference = oodcv.reference(classes, panel=panel, folder=folder)
ladder = oodcv.ladder(classes, panel=panel, folder=folder / "ladder")

# generated
pipe, tokens = models.load_pipeline(paths.resolve(pipeline), device), layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
sampler = Sampler(pipe, settings=Generation(**generation | {"start_fraction": start_fraction}))
origin = models.origin(paths.resolve(pipeline), tokens, classes)
studio = oodcvimages.Studio(sampler, origin, layout.artifacts("sliders"), panel)
images = oodcvimages.generated(studio, classes, folder=folder / "generated")

# kept
cosines = layout.artifacts("filtering") / "alignment"
kept = oodcvkept.filtered(images, cosines, labels=len(names), settings=Filtering(**filtering))
drawn = tables.select(images, kept, tables.TRAJECTORY, "generated images of kept trajectories")
sets = {"all": images[images["shift"].isin(kept["shift"])], "kept": drawn}
every = images.drop_duplicates(tables.TRAJECTORY)["shift"].value_counts().rename("trajectories")
pd.DataFrame(every).join(kept["shift"].value_counts().rename("kept"))

# accuracy
models_asked = list(networks)
other, third = (matching.independent(settings, number) for number in (1, 2))
found = {name: stats.outcomes(oodcv.answers_by_model(table, models_asked)) for name, table in sets.items()}
both_errors = {name: stats.error_shares(own, settings=settings) for name, own in found.items()}
errors = both_errors["all"]
mixed = reference[reference["shift"].isin(kept["shift"])]
line_errors = stats.error_shares(stats.outcomes(oodcv.answers_by_model(mixed.assign(scale=0.0), models_asked)), settings=other)
lines = stats.accuracy(line_errors)

# accuracy-figure
compared = sorted(kept["shift"].unique())
curves = pd.concat({name: stats.accuracy(own) for name, own in both_errors.items()}, names=["images"]).reset_index("images")
figure = oodcvplots.against_reference(curves, lines, models=models_asked, shifts=compared)
counts = [plots.extent(own.n[:-1]) for own in (both_errors["kept"], errors, line_errors)]
sizes = "kept {} trajectories, all {}, reference {} garments per shift".format(*counts)
plots.caption(figure, f"{sizes}; bands: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "oodcv_accuracy", pd.concat([curves, lines.assign(images="reference", scale=np.nan)]))

# start
foot = ladder[(ladder["scale"] == 0) & (ladder["shift"] == ladder["shift"].iloc[0])]
start = images[(images["scale"] == 0)].drop_duplicates(["class", "seed"])
start_kept = drawn[drawn["scale"] == 0].drop_duplicates(["class", "seed"])
parts = {"real": foot, "drawn, kept": start_kept, "drawn, all": start}
begin = oodcvclaims.starts(parts, list(networks), confidence=confidence)
begin.pivot(index="model", columns="of", values="estimate")[list(parts)].round(3)

# failure
distribution = stats.failure_distribution(stats.failure_shares(found["all"], settings=settings))
bars = distribution[(distribution["shift"] != stats.ALL) & (distribution["scale"] != stats.NEVER)]
figure = plots.panels(bars, plots.failure_bars, columns=3)
plots.caption(figure, f"{plots.extent(bars['n'])} trajectories per shift; lines: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "oodcv_failure", bars)

# labels
texts = {"clip": judges.clip, "shifts": compared, "unknown": unknown}
said = weatherlabels.probabilities(np.stack(reference["features"]), reference["class"], **texts).idxmax(axis=1)
confused = weatherlabels.confusion(reference["shift"], said, [*compared, weatherlabels.UNKNOWN], confidence=confidence)
given = weatherlabels.probabilities(np.stack(sets["all"]["features"]), sets["all"]["class"], **texts).idxmax(axis=1)
asked = sets["all"].assign(named=given.to_numpy(), reading=0.0)
named = stats.accuracy(stats.error_shares(calibration.arrange(asked, ["reading"]).naming, settings=settings))

# labels-figure
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
oodcvplots.label_map(left, confused, labels=[*compared, weatherlabels.UNKNOWN])
oodcvplots.label_lines(right, drawn_named := named[named["shift"] != stats.ALL])
plots.caption(figure, f"right: {plots.extent(drawn_named['n'])} trajectories; bands: {confidence:.0%} bootstrap over (class, seed)")
label_table = pd.concat({"reference": confused, "generated": named.drop(columns="model")}, names=["source"]).reset_index("source")
plots.save(figure, layout.figures / "oodcv_labels", label_table)

# doubt
right = weatherlabels.right(reference["shift"], said, compared)
hits = {"right": right, "unknown": (said == weatherlabels.UNKNOWN).to_numpy()}
doubt = oodcvclaims.doubt(reference, hits, shifts=compared, confidence=confidence)
label_right = stats.independent_share(right, confidence=confidence)
doubt.round(3)

# neighbours
found_near = sets["all"]
shifted = found_near[found_near["scale"] > 0].reset_index(drop=True)
real = mixed.reset_index(drop=True)
places, closeness = weatherlabels.nearest(np.stack(real["features"]), np.stack(shifted["features"]))
alike = weatherlabels.agreement(real, shifted, places, settings=settings)
chosen = weatherlabels.typical(real, closeness)
alike.round(3)

# neighbours-figure
near_rows = shifted.iloc[places[chosen["place"]].ravel()].reset_index(drop=True)
stock = oodcvimages.shown(studio, near_rows, path=folder / "shown.parquet").set_index(tables.KEY)["image"]
near = np.stack([tables.decode(stock[key], "shown") for key in near_rows[tables.KEY].itertuples(index=False, name=None)])
originals = oodcv.rendered(oodcv.heldout(classes), real.iloc[chosen["place"]].reset_index(drop=True), seed=seed)
sheet = np.concatenate([originals[:, None], near.reshape(len(chosen), -1, *near.shape[1:])], axis=1)
names_shown = [f"{row.amount} {row.shift.split()[-1]}" for row in chosen.itertuples()]

# neighbours-save
figure, axes = plt.subplots(figsize=(4.6, 0.85 * len(chosen)))
plots.contact_sheet(axes, sheet, rows=names_shown, columns=["real", *[f"{i + 1}." for i in range(sheet.shape[1] - 1)]])
plots.caption(figure, f"nearest of {len(shifted):,} generated images by CLIP; real: the picture of median closeness")
listed = near_rows[tables.KEY].assign(real=np.repeat(names_shown, sheet.shape[1] - 1), cosine=closeness[chosen["place"]].ravel().round(4))
plots.save(figure, layout.figures / "oodcv_neighbours", listed)

# severity
rungs = stats.error_shares(stats.outcomes(oodcv.answers_by_model(ladder[ladder["shift"].isin(compared)], models_asked)), settings=third)
sides = {"absolute": (errors, rungs), "relative": (matching.relative(errors), matching.relative(rungs))}
matched = {name: matching.severities(*[matching.with_mean(side) for side in pair]) for name, pair in sides.items()}
worth = pd.concat(matched, names=["compared"]).reset_index("compared")
mean_worth = worth[worth["model"] == matching.MEAN]
texted = mean_worth.assign(text=mean_worth.apply(oodcvclaims.span, axis=1))
texted.pivot(index=["shift", "compared"], columns="scale", values="text")

# severity-figure
figure = plots.panels(mean_worth, oodcvplots.severity_lines, columns=3)
sizes = f"{plots.extent(errors.n[:-1])} trajectories, {plots.extent(rungs.n[:-1])} rendered garments per shift"
plots.caption(figure, f"mean over {len(networks)} classifiers; {sizes}; bands: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "oodcv_severity", worth)

# scale
line_mean, drawn_mean, rung_mean = (matching.with_mean(side) for side in (line_errors, errors, rungs))
crossing = matching.scales(drawn_mean, line_mean)
opened = mixed.groupby("shift")["scale"].mean().rename("true mean severity")
looked_up = {"scale": crossing, "severity": matching.scales(rung_mean, line_mean)}
means = {key: t[t["model"] == matching.MEAN].set_index("shift") for key, t in looked_up.items()}
ends = {"below": ", at most", "above": ", at least"}
read = {key: t.apply(oodcvclaims.span, axis=1) + t["beyond"].replace(ends) for key, t in means.items()}
pd.DataFrame(read).join(opened.round(2))

# layout
words = {"heavy snow": "snow", "heavy fog": "fog", "heavy rain": "rain"}
some = examples.assign(name=[f"{row.shift.split()[-1]}_{i:03d}.png" for i, row in enumerate(examples.itertuples())])
with tempfile.TemporaryDirectory() as place:
    oodcvfolder.write(Path(place), "weather", some, pictures)
    back, photographs = oodcvfolder.read(Path(place), "weather", classes=sorted(some["class"].unique()))
same = np.array_equal(np.stack(photographs), pictures) and (back["weather"].to_numpy() == some["shift"].map(words).fillna("unknown")).all()
print(f"{len(back)} pictures written as OOD-CV and read back, equal: {same}")

# paper-table
first = models_asked[0]
correct = (reference[first] == reference["class"]).to_numpy()
table10 = oodcvclaims.table10(correct, said, paths.PUBLISHED / "cns_table10.csv", confidence=confidence)
table10.round(3)

# claims
last_named = named[(named["shift"] == stats.ALL) & (named["scale"] == scales[-1])].iloc[0]
gaps = {name: matching.differences(own, line_errors).query("scale == @scales[-1]") for name, own in both_errors.items()}
said_of = {name: oodcvclaims.statements(own, line_errors, model=first, named=last_named) for name, own in both_errors.items()}
pd.concat(said_of, names=["images"]).round(3)

# answer
at_end = {name: table[(table["shift"] == stats.ALL) & (table["model"] == first)].iloc[0] for name, table in gaps.items()}
span = oodcvclaims.span
relative_end = mean_worth[(mean_worth["compared"] == "relative") & (mean_worth["scale"] == scales[-1])]
ends = "; ".join(f"{row['shift'].split()[-1]} {span(row)}" for _, row in relative_end.iterrows())
minus = " and ".join(f"{span(row)} on {name} generated images" for name, row in at_end.items())
text = f"At scale {scales[-1]:g} accuracy ({first}, all shifts) minus that on the reference is {minus}"
text += f". Counted from the start of each, the last scale costs as much as the rendered severity: {ends}"
answer.update(Markdown(f"**{text}. CLIP names the true weather of {span(label_right)} of {label_right['n']} reference pictures.**"))

# outputs
parts = {"reference": lines} | {f"minus_reference_{name}": table for name, table in gaps.items()}
parts |= {f"last_scale_{name}": part[part["scale"] == scales[-1]] for name, part in curves.groupby("images")}
metrics = {key: {name: stats.records(part, "shift") for name, part in table.groupby("model")} for key, table in parts.items()}
metrics |= {"neighbours": stats.records(alike, "same"), "labels": stats.records(named[named["scale"] == scales[-1]], "shift")}
metrics["labels"]["reference"] = label_right
metrics["severity"] = {f"{way} {shift}": stats.records(part, "scale") for (way, shift), part in mean_worth.groupby(["compared", "shift"])}
metrics["scale_of_reference"] = stats.records(crossing[crossing["model"] == matching.MEAN], "shift")
tables.write_metrics(layout.metrics / "oodcv.json", metrics)
