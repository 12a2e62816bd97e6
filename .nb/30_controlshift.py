# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import controlshift, latents, latentsets, models, paths, plots, siblings, stats, tables, workers
from cnslib.studies import Controlshift

# settings
plots.use_style()
layout = paths.Layout(out)
sizes = {"train_images": train_images, "validation_images": validation_images, "test_images": test_images, "side": side}
drawing = {"factors": factors, "angles": angles, "steps": steps, "guidance": guidance, "draws": draws}
settings = Controlshift(resamples, confidence, seed, **sizes, **drawing)

# printed
largest = np.pi / 2
readings = {"as text and code mean it": False, "as printed": True}
rows = {name: siblings.extended(largest, size=256, images=20, seed=seed, printed=printed) for name, printed in readings.items()}
angles_to = pd.DataFrame({name: {"to z": row["z"].mean(), "to the target": row["target"].mean()} for name, row in rows.items()}).T
angles_to.rename_axis("degrees at theta = pi/2").round(1)

# draw
pipe = models.load_pipeline(paths.resolve(pipeline), device)
tokens = layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
decoder = controlshift.Decoder(pipe, models.origin(paths.resolve(pipeline), tokens, classes), classes, settings)
sets = layout.artifacts("controlshift")
files = controlshift.make(decoder, sets)
print(f"{len(files)} files, {sum(len(latentsets.load(sets, name)) for name in files):,} images from latents of {decoder.size:,} numbers")

# images
images = latentsets.test_set(sets, settings)
strength = latentsets.strength(settings, decoder.size)
images.groupby(["shift", "scale"]).size().unstack().astype(int)

# strips
stems = ["controlshift_truncation", "controlshift_extend", "controlshift_overlap"]
for kind, stem in zip(latents.KINDS, stems, strict=True):
    sheet, own = latentsets.strips(images, kind, 1), strength[strength["shift"] == kind]
    figure, axes = plt.subplots(figsize=(0.75 * sheet.shape[1] + 1, 0.62 * len(sheet)))
    plots.contact_sheet(axes, sheet, rows=sorted(classes), columns=[f"{value:g}" for value in own["set_to"]])
    plots.caption(figure, "columns: " + ("R" if kind == "truncation" else "theta in degrees"))
    plots.save(figure, layout.figures / stem, own)

# change
changed = latentsets.change(images, settings=settings)
figure, axes = plt.subplots(figsize=(4, 2.6))
plots.estimate_lines(axes, changed, x="scale", hue="shift", label="change in grey levels")
axes.set(xlabel="step of the shift", xticks=range(len(angles)))
axes.legend()
plots.caption(figure, f"{plots.extent(changed['n'])} images per step; bands: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "controlshift_change", changed)

# intensity
few = latentsets.strength(settings, 4)
strength.set_index(["shift", "set_to"])[["exact", "n", "estimate", "low", "high"]].round(4)

# intensity-figure
figure, panels = plt.subplots(1, 3, figsize=(7.5, 2.2), sharey=True, layout="constrained")
for axes, kind in zip(panels, latents.KINDS, strict=True):
    own, other = (table[table["shift"] == kind] for table in (strength, few))
    axes.errorbar(own["set_to"], own["estimate"], np.abs(own[["low", "high"]].sub(own["estimate"], axis=0)).T, fmt="o", markersize=4)
    axes.plot(own["set_to"], own["exact"])
    axes.plot(other["set_to"], other["exact"], linestyle=":")
    axes.set(title=kind, xlabel="R" if kind == "truncation" else "theta in degrees", ylim=(-0.03, 1.03))

# intensity-save
panels[0].set_ylabel("intensity (Definition 1)")
counted = f"dots: {plots.extent(strength['n'].astype(int))} draws, {confidence:.0%} Wilson interval"
plots.caption(figure, f"{counted}; lines: closed form; dotted: closed form of 4 dimensions")
both = pd.concat({decoder.size: strength, 4: few}, names=["dimensions"]).reset_index("dimensions")
plots.save(figure, layout.figures / "controlshift_intensity", both)

# start
zero = controlshift.Piece("again", "train", "extend", 0, 1, min(train_images, controlshift.TOGETHER))
again = pd.DataFrame(workers.each(list, [(controlshift.class_rows(decoder, zero, classes[0]),)], device=device)[0])
stored = latentsets.load(sets, "train_extend").merge(again, on=tables.KEY)
same = (stored["image_x"] == stored["image_y"]).mean()
print(f"{same:.0%} of {len(stored)} images of {classes[0]} are the same bytes")

# paper
published = pd.read_csv(paths.PUBLISHED / "control_shift_text.csv").set_index("id")["value"]
norm = float(np.linalg.norm(latents.targets(decoder.size, seed=seed).first))
ours = {"latent_norm": norm, "latent_size": decoder.size, "test_images": test_images * len(classes)}
ours |= {"intensity": strength["exact"].max(), "largest_truncation": factors[-1]}
latentsets.against(ours, published)

# answer
ends = strength[strength["scale"] == strength["scale"].max()].set_index("shift")
moved = changed[changed["scale"] == changed["scale"].max()].set_index("shift")
text = [f"{kind} {ends.loc[kind, 'exact']:.2f} and {moved.loc[kind, 'estimate']:.0f} grey levels" for kind in latents.KINDS]
answer.update(Markdown(f"**At the last step the intensity and the change of the pictures are: {'; '.join(text)}.**"))

# outputs
measured = {"intensity": strength, "change": changed}
steps_of = {name: table.assign(step=table["scale"].map("step {:.0f}".format)) for name, table in measured.items()}
metrics = {name: {kind: stats.records(part, "step") for kind, part in table.groupby("shift")} for name, table in steps_of.items()}
tables.write_metrics(layout.metrics / "controlshift.json", metrics)
print(f"metrics/controlshift.json: {', '.join(metrics)}")
