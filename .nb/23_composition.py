# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import adapters, clustered, composition, directions, encoders, health, mixtures, models, paths, plots, stats, tables
from cnslib.config import Generation
from cnslib.generation import Sampler
from cnslib.sliders import slider_path
from cnslib.studies import Composition

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Composition(resamples=resamples, confidence=confidence, seed=seed, pairs=pairs, weights=weights, seeds=seeds)
names = encoders.read_labels(labels)

# adding
pipe, tokens = models.load_pipeline(paths.resolve(pipeline), device), layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
sampler, folder = Sampler(pipe, settings=Generation(**generation)), layout.artifacts("sliders")
files = [slider_path(folder, shift, classes[0]) for shift in pairs[0]]

# zero
with composition.loaded(pipe, files) as both:
    summed = composition.shifted(sampler, both, classes[0], 1, [[weight, 0.0] for weight in weights])
with adapters.loaded(pipe, files[0]):
    alone = sampler.shifted(classes[0], 1, weights)
print("largest difference in grey levels:", (summed.int() - alone.int()).abs().max().item())

# score
judge = health.Judge(encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device))
oracles = encoders.Oracle(oracle, labels=names, device=device)
origin = models.origin(paths.resolve(pipeline), tokens, classes)
study = directions.Study(sampler, origin, judge, oracles, layout.artifacts("generation"), layout.artifacts("composition"))
scores = composition.score(study, folder, pairs, classes, weights=weights, seeds=seeds)
effects = mixtures.effects(scores)
print(f"{len(scores)} pictures judged, {len(effects) // 2} of them with two sliders")

# grid
shown = classes[-1]
grids = composition.films(study, folder, pairs, shown, weights=weights, seed=1)
figure, columns = plt.subplots(1, len(pairs), figsize=(3.4 * len(pairs), 3.3), squeeze=False, layout="constrained")
for axes, ((first, second), grid) in zip(columns.flat, grids.items(), strict=True):
    plots.contact_sheet(axes, grid, rows=[f"{weight:g}" for weight in weights], columns=[f"{weight:g}" for weight in weights])
    axes.set(ylabel=first, title=second)
plots.caption(figure, f"{shown}, seed 1; weights of the two sliders")
plots.save(figure, layout.figures / "composition_grid", scores[(scores["class"] == shown) & (scores["seed"] == 1)])

# curves
curve = mixtures.curves(scores, settings=settings)
curve["panel"] = curve["shift"] + "\n(" + curve["pair"] + ")"
curve["other slider"] = curve["other_weight"].map("other at {:g}".format)
figure = plots.panels(curve, plots.estimate_lines, by="panel", columns=2, x="weight", hue="other slider", label="gain of alignment")
plots.caption(figure, f"{plots.extent(curve['n'])} garments per point; bands: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "composition_gain", curve.drop(columns="panel"))

# effects
summary = mixtures.summary(effects, settings=settings)
last = summary[(summary["weight"] == max(weights)) & (summary["other_weight"] == max(weights))].copy()
last["text"] = [f"{row.estimate:.2f} ({row.low:.2f} to {row.high:.2f})" for row in last.itertuples()]
print(f"n = {last['n'].min()} garments per row")
last.pivot(index=["pair", "shift"], columns="measure", values="text")[mixtures.EFFECTS]

# interaction
inter = summary[summary["measure"] == "interaction"].copy()
weight, other = inter["weight"].map("{:g}".format), inter["other_weight"].map("{:g}".format)
inter["row"] = inter["shift"] + " at " + weight + " (" + inter["pair"] + "), other at " + other
figure, axes = plt.subplots(figsize=(4.2, 0.6 + 0.22 * len(inter)))
plots.estimate_dots(axes, inter, y="row", label="interaction of the gains", reference=0)
plots.caption(figure, f"{plots.extent(inter['n'])} garments; lines: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "composition_interaction", inter.drop(columns="row"))

# both
seen = mixtures.both_show(effects)
pictures = scores.assign(class_kept=(scores["class_probability"] >= 1 / len(names)).astype(float))
groups = [*seen.groupby(composition.WEIGHTS)]
shares = {f"{one:g}, {other:g}": clustered.mean(part["shows"], part, settings=settings) for (one, other), part in groups}
table = clustered.means(pictures, ["structure", "class_kept"], composition.WEIGHTS, settings=settings)
display(pd.DataFrame(shares).T.rename_axis("weights: show both").round(2))
table.pivot(index=composition.WEIGHTS, columns="measure", values=["n", "estimate", "low", "high"]).round(2)

# paper
top = effects[(effects["weight"] == max(weights)) & (effects["other_weight"] == max(weights))]
order = {side: top[top["shift"].isin([pair[place] for pair in pairs])] for place, side in enumerate(composition.PAIR)}
ours = {side: clustered.mean(part["together"], part, settings=settings) for side, part in order.items()}
ours["interaction"] = clustered.mean(top["interaction"], top, settings=settings)
clustered.judged(ours, pd.read_csv(paths.PUBLISHED / "composition.csv")).round(3)

# answer
corner = shares[f"{max(weights):g}, {max(weights):g}"]
half = "Yes, mostly" if corner["low"] > 0.5 else "Seldom" if corner["high"] < 0.5 else "Sometimes"
text = f"{half}: with both sliders at {max(weights):g}, {corner['estimate']:.0%} ({corner['low']:.0%} to {corner['high']:.0%})"
text += f" of {corner['n']} pictures show both shifts, and together they gain {ours['interaction']['estimate']:+.2f}"
text += f" ({ours['interaction']['low']:+.2f} to {ours['interaction']['high']:+.2f}) of alignment beyond the sum of each alone."
answer.update(Markdown(f"**{text}**"))

# outputs
metrics = {"show_both": shares, "last_weights": ours}
metrics["effects"] = {f"{pair}: {shift}": stats.records(part, "measure") for (pair, shift), part in last.groupby(["pair", "shift"])}
tables.write_metrics(layout.metrics / "composition.json", metrics)
print(f"metrics/composition.json: {', '.join(metrics)}")
