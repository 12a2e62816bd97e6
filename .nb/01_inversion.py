# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import catalog as scenes
from cnslib import classifiers, encoders, inversion, models, paths, plots, provision, realism, samples, stats, tables, units
from cnslib.config import Inversion

# settings
plots.use_style()
layout = paths.Layout(out)
compared = {"validation_images": validation_images, "sampling_steps": sampling_steps, "guidance": guidance, "judge": judge}
settings = Inversion(learning_rate, steps, batch_size, images_per_class, **compared, seed=seed)

# data
pipe = models.load_pipeline(paths.resolve(pipeline), device)
source, side = layout.locate(catalog), inversion.side(pipe)
heldout = {name: scenes.images(source, "heldout", name, count=images_per_class, side=side) for name in classes}
learned = {name: scenes.images(source, "train", name, count=images_per_class, side=side) for name in classes}
real = {name: scenes.images(source, "train", name, count=validation_images, side=side) for name in classes}
Markdown(f"{len(classes)} classes of {side}-pixel scenes; {images_per_class} each to learn from and {images_per_class} others to compare.")

# invert
base, folder = units.directory_digest(paths.resolve(pipeline)), layout.artifacts("inversion")
given = {"in_star": in_star, "settings": settings, "pictures": source, "base": base}
tokens = provision.make_tokens(pipe, classes, **given, folder=folder)

# loss
losses = pd.DataFrame({name: inversion.loss_curve(path) for name, path in tokens.items()}).rename_axis("step")
smooth = losses.rolling(max(1, steps // 10), min_periods=1).mean().reset_index().melt("step", var_name="class", value_name="loss")
figure, axes = plt.subplots(figsize=(4.5, 2.8))
sns.lineplot(smooth, x="step", y="loss", hue="class", ax=axes)
if axes.get_legend():
    sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), fontsize=7, title=None)
plots.save(figure, layout.figures / "inversion_loss", smooth)

# draw
models.load_tokens(pipe, folder, classes)
origin = models.origin(paths.resolve(pipeline), folder, classes)
drawn = samples.draw_all(pipe, classes, settings=settings, origin=origin, folder=folder / "samples")
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
more, less = (f"{record['estimate']:+.3f} ({record['low']:+.3f} to {record['high']:+.3f})" for record in (gain, nearer))
first = f"A learned word {verb} the garments closer to the catalog: accuracy {more}, Frechet distance {less}"
sentence = f"**{first}; {improved['estimate']:.0%} of {improved['n']} classes come closer (n = {gain['n']} images per prompt).**"
answer.update(Markdown(sentence))

# floor
spoken = {"text": "by name", "in_star": "by token"}
floor = {name: realism.frechet_distance(encoder.features(real[name]).numpy(), references[name]) for name in classes}
floors = pd.DataFrame({"class": classes, "prompt": "real scenes", "n": validation_images, "estimate": list(floor.values())})
shown = frechet[(frechet["class"] != "all") & (frechet["prompt"] != "difference")]
pd.concat([shown, floors]).pivot(index="class", columns="prompt", values="estimate").loc[classes].round(3)

# class-figure
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for offset, (prompt, part) in zip((-0.1, 0.1), shown.groupby("prompt"), strict=True):
    across, arms = np.arange(len(part)) + offset, abs(part[["low", "high"]].T - part["estimate"])
    axes.errorbar(across, part["estimate"], arms, fmt="o", markersize=4, label=spoken[prompt])
axes.plot(floors["estimate"].to_numpy(), "x", color="grey", label="real scenes")
axes.set(ylabel="Frechet distance to held-out scenes", ylim=(0, None), xticks=range(len(classes)), xticklabels=classes)
figure.legend(loc="outside upper center", ncols=3, title=f"{plots.extent(shown['n'])} images; lines: 95% jackknife over seeds")
plots.save(figure, layout.figures / "inversion_frechet", pd.concat([shown, floors]))

# look
wide = min(4, validation_images)
rows = {name: (drawn["class"] == name) for name in classes}
by_prompt = {prompt: drawn["prompt"] == prompt for prompt in samples.WORDS}
chosen = [[heldout[name][:wide], *(pictures[own & asked][:wide] for asked in by_prompt.values())] for name, own in rows.items()]
titles = [title if i == 0 else "" for title in ("catalog", *spoken.values()) for i in range(wide)]
figure, axes = plt.subplots(figsize=(8, 6.5))
plots.contact_sheet(axes, np.stack([np.concatenate(parts) for parts in chosen]), rows=classes, columns=titles)
plots.save(figure, layout.figures / "inversion_samples", drawn.loc[drawn["seed"] <= wide, ["prompt", "class", "seed"]])

# nearest
sides = {"learned": {name: encoder.features(images).numpy() for name, images in learned.items()}, "heldout": references}
near = realism.neighbours(drawn, encoder.features(pictures).numpy(), sides)
nearer_learned = {prompt: realism.nearer(own, "learned", "heldout") for prompt, own in near.groupby("prompt", sort=False)}
pd.DataFrame(nearer_learned).T.rename(index=spoken).rename_axis("share nearer to a learned scene").round(3)

# pairs
shown_pairs = near[(near["prompt"] == "in_star") & (near["seed"] <= wide)]
pairs = {name: [] for name in classes}
for row, name, place in shown_pairs[["class", "learned_place"]].itertuples():
    pairs[name] += [pictures[row], learned[name][place]]
figure, axes = plt.subplots(figsize=(6, 6.5))
plots.contact_sheet(axes, np.stack([np.stack(own) for own in pairs.values()]), rows=classes, columns=["drawn", "nearest"] * wide)
plots.save(figure, layout.figures / "inversion_nearest", near)

# paper
published = pd.read_csv(paths.PUBLISHED / "cns_table2a.csv", index_col=0)
by_name, by_token = ({quantity: records[prompt]["estimate"] for quantity, records in found.items()} for prompt in samples.WORDS)
ratio = by_token["frechet"] / by_name["frechet"]
ours = [by_name["accuracy"], by_token["accuracy"], gain["estimate"], ratio]
fid, right = published["fid"], published["accuracy"]
theirs = [right["SD"], right["IN*"], right["IN*"] - right["SD"], fid["IN*"] / fid["SD"]]
table = pd.DataFrame({"ours": ours, "published (Table 2a)": theirs})
table.index = ["accuracy by name", "accuracy by token", "accuracy, token minus name", "Frechet distance, token / name"]

# verdict
table["difference"] = table["ours"] - table["published (Table 2a)"]
agree = ["same direction" if better else "other direction" for better in (gain["estimate"] > 0, ratio < 1)]
table.assign(verdict=["another world"] * 2 + agree).round(3)

# outputs
metrics = {f"{quantity}_{prompt}": record for quantity, records in found.items() for prompt, record in records.items()}
metrics |= {"classes_improved": improved} | {f"nearer_learned_{prompt}": record for prompt, record in nearer_learned.items()}
tables.write_metrics(layout.metrics / "inversion.json", metrics)
print(f"{len(tokens)} tokens, {len(drawn)} compared images, {len(metrics)} metrics")
