# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import dataclasses

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import catalog as pictures_of
from cnslib import drawings, encoders, generation, health, inversion, models, paths, plots, realism, stats, tables, units
from cnslib.config import Generation

# settings
plots.use_style()
layout = paths.Layout(out)
way = drawings.chosen(drawing)
settings = way.settings(Generation(steps, guidance, guidances, start_fraction, negative_prompt))

# drawing
pipe = models.load_pipeline(paths.resolve(pipeline), device)
tokens, folder = layout.artifacts("inversion"), layout.artifacts("generation")
models.load_tokens(pipe, tokens, classes)
origin = models.origin(paths.resolve(pipeline), tokens, classes)
cost = generation.evaluations(settings, shifts=len(shifts), images=len(classes) * seeds, scales=len(scales))
print(f"slider off for {generation.steps_without_slider(settings)} of {settings.steps} steps")
pd.DataFrame({"UNet evaluations": cost})

# candidates
grid = [(name, seed) for name in classes for seed in range(1, seeds + 1)]
units.prune(folder, {f"guidance/{value}.parquet" for value in guidances if value != guidance}, "guidance/*.parquet")
drawn = {}
for value in sorted({*guidances, guidance}):
    sampler = way.sampler(pipe, settings=dataclasses.replace(settings, guidance=value))
    path = folder / ("unshifted.parquet" if value == guidance else f"guidance/{value}.parquet")
    drawn[value] = way.unshifted_shard(sampler, classes, seeds=seeds, origin=origin, path=path)

# judges
eye, reader = encoders.ImageEncoder(image_encoder, device=device), encoders.Clip(clip, device=device)
names = encoders.read_labels(labels)
captions = reader.text_features([inversion.PROMPT.format(token=name) for name in names])
source, side = layout.locate(catalog), inversion.side(pipe)
heldout = np.concatenate([pictures_of.images(source, "heldout", name, count=seeds, side=side) for name in classes])
reference = eye.features(heldout).numpy()

# measures
frechet, accuracy = {}, {}
for value, table in drawn.items():
    pictures, truth = tables.pictures(table, f"guidance {value}"), table["class"].map(names.index).to_numpy()
    distances = realism.distance(eye.features(pictures).numpy(), table["seed"].to_numpy(), reference)
    frechet[value] = realism.jackknife(distances, len(table))
    answers = (reader.image_features(pictures) @ captions.T).argmax(dim=1).numpy()
    accuracy[value] = stats.independent_share(answers == truth, confidence=0.95)

# choice
choice = pd.DataFrame({"accuracy": pd.DataFrame(accuracy).T["estimate"], "frechet": pd.DataFrame(frechet).T["estimate"]})
top = choice["accuracy"].max()
error = np.sqrt(top * (1 - top) / len(grid))
best = choice[choice["accuracy"] >= top - error]["frechet"].idxmin()
choice.rename_axis("guidance").assign(best=choice.index == best, used=choice.index == guidance).round(3)

# choice-figure
measured = {"accuracy (zero-shot)": accuracy, "Frechet distance": frechet}
figure, panels = plt.subplots(1, 2, figsize=(6.5, 2.4), layout="constrained")
for axes, (label, records) in zip(panels, measured.items(), strict=True):
    table = pd.DataFrame(records).T.rename_axis("guidance").reset_index().assign(images="unshifted")
    plots.estimate_lines(axes, table, x="guidance", hue="images", label=label)
plots.caption(figure, f"n = {len(grid)} images each; 95 % intervals: Wilson, and jackknife over seeds")
plots.save(figure, layout.figures / "generation_guidance", choice.rename_axis("guidance").reset_index())

# choice-verdict
said = "still the best" if best == guidance else f"not the best any more: {best} is, and params.yaml should say so"
Markdown(f"The benchmark is drawn at guidance **{guidance}**, which is {said}.")

# images
inputs = {"origin": origin, "sliders": layout.artifacts("sliders")}
shards = way.generate(pipe, shifts, classes, scales=scales, seeds=seeds, settings=settings, **inputs, folder=folder)
unshifted = tables.read(shards.pop("unshifted"), tables.images)
index = pd.concat([unshifted[tables.KEY], *(tables.read(path, tables.images)[tables.KEY] for path in shards.values())])
index.groupby(["shift", "scale"]).size().unstack("scale").fillna(0).astype(int)

# complete
above = [scale for scale in scales if scale > 0]
expected = [("unshifted", *key, 0.0) for key in grid] + [(shift, *key, scale) for shift in shifts for key in grid for scale in above]
total = len(tables.complete(index, expected, tables.KEY, "images"))

# change
start = dict(list(unshifted.groupby("class")))
parts = (part for path in shards.values() for part in tables.read(path, tables.images).groupby("class"))
changes = pd.concat([generation.change(part, start[name]) for name, part in parts], ignore_index=True)
table = health.curves(changes, "change")
figure, axes = plt.subplots(figsize=(4.5, 3.6))
plots.estimate_lines(axes, table, x="scale", hue="shift", label="mean change (grey levels)", named=True)
plots.caption(figure, f"{plots.extent(table['n'])} classes per shift; bands: 95 % bootstrap over classes")
plots.save(figure, layout.figures / "generation_change", table)

# strips-data
ends = [classes[0], classes[-1]]
chosen = [tables.read(path, tables.images).query("seed == 1 and `class` in @ends") for path in shards.values()]
full = tables.trajectories(pd.concat([unshifted, *chosen]), shifts)

# strips
for stem, name in {"generation_strips_first": classes[0], "generation_strips_last": classes[-1]}.items():
    rows = full[(full["class"] == name) & (full["seed"] == 1)].sort_values(["shift", "scale"])
    sheet = tables.pictures(rows, name).reshape(len(shifts), len(scales), side, side, 3)
    figure, axes = plt.subplots(figsize=(5, 1.0 * len(shifts) + 0.4))
    plots.contact_sheet(axes, sheet, rows=sorted(shifts), columns=[str(scale) for scale in scales])
    plots.caption(figure, f"{name}, seed 1; columns: slider scale")
    plots.save(figure, layout.figures / stem, rows[tables.KEY])

# paper
quantities = ["scales", "largest scale", "DDIM steps", "guidance", "share of steps with slider", "shifts", "classes", "seeds", "images"]
active = 1 - generation.steps_without_slider(settings) / settings.steps
ours = [len(scales), max(scales), settings.steps, guidance, active, len(shifts), len(classes), seeds, len(shifts) * len(grid) * len(scales)]
published = [6, 2.5, 100, 7.5, 0.75, 14, 100, 50, 420_000]
comparison = pd.DataFrame({"ours": ours, "published": published}, index=quantities)
comparison["difference"] = comparison["ours"] - comparison["published"]
comparison.assign(verdict=np.where(comparison["difference"].abs() < 0.02, "same", "differs")).round(3)

# answer
last = changes[changes["scale"] == max(scales)]["change"].mean()
recognised = accuracy[guidance]["estimate"]
first = f"{total} images in {len(shifts) * len(grid)} trajectories; {recognised:.0%} of the unshifted ones are recognised"
sentence = f"**{first}, and at scale {max(scales)} a picture differs from its unshifted one by {last:.0f} of 255 grey levels on average.**"
answer.update(Markdown(sentence))

# outputs
count = {"n": total, **dict.fromkeys(("estimate", "low", "high"), total)}
metrics = {"images": count, "accuracy_scale_0": accuracy[guidance], "frechet_scale_0": frechet[guidance]}
tables.write_metrics(layout.metrics / "generation.json", metrics)
print(f"{total} images in {len(shards) + 1} tables")
