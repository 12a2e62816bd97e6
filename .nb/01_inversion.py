# imports
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown
from matplotlib import pyplot as plt

from cnslib import catalog as scenes
from cnslib import classifiers, encoders, inversion, models, paths, plots, realism, stats, tables, units
from cnslib.config import Inversion

plots.use_style()
layout = paths.Layout(out)

# data
pipe = models.load_pipeline(paths.resolve(pipeline), device)
source, side = layout.locate(catalog), inversion.side(pipe)
heldout = {name: scenes.images(source, "heldout", name, count=images_per_class, side=side) for name in classes}
real = {name: scenes.images(source, "train", name, count=validation_images, side=side) for name in classes}
Markdown(f"{len(classes)} classes of {side}-pixel scenes: {images_per_class} each to learn from, {images_per_class} others to compare with.")

# settings
settings = Inversion(
    learning_rate=learning_rate, steps=steps, batch_size=batch_size, images_per_class=images_per_class,
    validation_images=validation_images, sampling_steps=sampling_steps, guidance=guidance, judge=judge, seed=seed)
base, folder = units.directory_digest(paths.resolve(pipeline)), layout.artifacts("inversion")
tokens = inversion.invert_all(pipe, classes, settings=settings, pictures=source, base=base, folder=folder)

# loss
losses = pd.DataFrame({name: inversion.loss_curve(path) for name, path in tokens.items()}).rename_axis("step")
smooth = losses.rolling(max(1, steps // 10), min_periods=1).mean().reset_index().melt("step", var_name="class", value_name="loss")
figure, axes = plt.subplots(figsize=(4.5, 2.8))
sns.lineplot(smooth, x="step", y="loss", hue="class", ax=axes)
axes.legend(fontsize=6, ncol=2)
plots.save(figure, layout.figures / "inversion_loss", smooth)

# draw
models.load_tokens(pipe, folder, classes)
origin = models.origin(paths.resolve(pipeline), folder, classes)
drawn = realism.draw_all(pipe, classes, settings=settings, origin=origin, folder=folder / "samples")
pictures = tables.pictures(drawn, "samples")
drawn[["prompt", "class"]].value_counts().unstack("prompt").loc[classes]

# judge
encoder = encoders.ImageEncoder(image_encoder, device=device)
references = {name: encoder.features(images).numpy() for name, images in heldout.items()}
classifier = classifiers.load("judge", judge, encoders.read_labels(labels), device)
accuracy = realism.accuracy_table(drawn, realism.named(classifier, pictures, list(drawn["class"])))
frechet = realism.frechet_table(drawn, encoder.features(pictures).numpy(), references)

# results
overall = {"accuracy": accuracy[accuracy["class"] == "all"], "frechet": frechet[frechet["class"] == "all"]}
found = {quantity: stats.records(table, "prompt") for quantity, table in overall.items()}
by_class = frechet[frechet["class"] != "all"].pivot(index="class", columns="prompt", values="estimate").loc[classes]
improved = stats.independent_share((by_class["difference"] < 0).to_numpy(), confidence=0.95)
pd.concat(overall, names=["quantity"]).set_index("prompt", append=True).droplevel(1).drop(columns="class").round(3)

# answer
gain, nearer = found["accuracy"]["difference"], found["frechet"]["difference"]
verb = "brings" if nearer["estimate"] < 0 < gain["estimate"] else "does not bring"
Markdown(f"**A learned word {verb} the garments closer to the catalog: the classifier's accuracy changes by {gain['estimate']:+.3f} "
         f"({gain['low']:+.3f} to {gain['high']:+.3f}), the Frechet distance by {nearer['estimate']:+.3f} ({nearer['low']:+.3f} to "
         f"{nearer['high']:+.3f}), and {improved['estimate']:.0%} of {improved['n']} classes come closer "
         f"(n = {gain['n']} images per prompt).**")

# floor
floor = {name: realism.frechet_distance(encoder.features(real[name]).numpy(), references[name]) for name in classes}
floors = pd.DataFrame({"class": classes, "prompt": "real scenes", "n": validation_images, "estimate": list(floor.values())})
shown = frechet[(frechet["class"] != "all") & (frechet["prompt"] != "difference")]
pd.concat([shown, floors]).pivot(index="class", columns="prompt", values="estimate").loc[classes].round(3)

# class-figure
figure, axes = plt.subplots(figsize=(5.5, 3))
for place, (prompt, part) in enumerate(shown.groupby("prompt")):
    spread = [part["estimate"] - part["low"], part["high"] - part["estimate"]]
    axes.errorbar(np.arange(len(part)) + 0.24 * place - 0.12, part["estimate"], spread, fmt="o", markersize=4, label=prompt)
axes.plot(np.arange(len(floors)), floors["estimate"], "x", color="grey", label="real scenes")
axes.set_xticks(np.arange(len(classes)), classes, rotation=40, ha="right")
axes.set(ylabel="Frechet distance to held-out scenes")
axes.legend()
plots.save(figure, layout.figures / "inversion_frechet", pd.concat([shown, floors]))

# look
wide = min(4, validation_images)
rows = {name: (drawn["class"] == name) for name in classes}
chosen = [[heldout[name][:wide], *(pictures[own & (drawn["prompt"] == p)][:wide] for p in realism.WORDS)] for name, own in rows.items()]
titles = [word for word in ("catalog", *realism.WORDS) for _ in range(wide)]
figure, axes = plt.subplots(figsize=(8, 6.5))
plots.contact_sheet(axes, np.stack([np.concatenate(parts) for parts in chosen]), rows=classes, columns=titles)
axes.tick_params(axis="x", labelsize=6)
plots.save(figure, layout.figures / "inversion_samples", drawn.loc[drawn["seed"] <= wide, ["prompt", "class", "seed"]])

# paper
rows = {
    "accuracy by name": (found["accuracy"]["text"]["estimate"], 0.68, 0.0),
    "accuracy by token": (found["accuracy"]["in_star"]["estimate"], 0.74, 0.0),
    "accuracy, token minus name": (gain["estimate"], 0.74 - 0.68, 0.0),
    "Frechet distance, token / name": (found["frechet"]["in_star"]["estimate"] / found["frechet"]["text"]["estimate"], 27.1 / 33.8, 1.0),
}
table = pd.DataFrame(rows, index=["ours", "published", "neutral"]).T

# verdict
table["difference"] = table["ours"] - table["published"]
agree = (table["ours"] > table["neutral"]) == (table["published"] > table["neutral"])
table["verdict"] = agree.map({True: "same direction", False: "other direction"})
table.drop(columns="neutral").round(3)

# outputs
metrics = {f"{quantity}_{prompt}": record for quantity, records in found.items() for prompt, record in records.items()}
tables.write_metrics(layout.metrics / "inversion.json", metrics | {"classes_improved": improved})
print(f"{len(tokens)} tokens, {len(drawn)} compared images, {len(metrics) + 1} metrics")
