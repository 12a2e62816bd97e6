# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from dataclasses import replace

import pandas as pd
from matplotlib import pyplot as plt

from cnslib import bridge, degradation, encoders, lessons, neighbours, paths, plots, shiftfindings, stats, tables
from cnslib.config import Evaluation
from cnslib.studies import Controlshift, Degradation

# settings
plots.use_style()
layout = paths.Layout(out)
shifted = Controlshift(**controlshift)
training = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "penalties": penalties}
chosen = {"networks": networks, "runs": runs, "reference": reference, "rce_reference": rce_reference, "least": least}
settings = Degradation(resamples, confidence, seed, **chosen, **training)
sets, folder = layout.artifacts("controlshift"), layout.artifacts("degradation")

# training
course = lessons.Course(settings, shifted, sets, classes, layout.root / "checkpoints" / "degradation", device)
answers = lessons.outcome(course, folder / "answers")
found = shiftfindings.standard(answers)
errors = stats.error_shares(found, settings=settings)
accuracy = stats.accuracy(errors)
ends = accuracy[accuracy["scale"].isin([0.0, errors.bins[-1]])]
ends.pivot(index="model", columns=["shift", "scale"], values="estimate").round(2)

# accuracy-figure
plain = [name for name in errors.models if shiftfindings.AUGMENTED not in name]
single = accuracy[accuracy["model"].isin(plain) & (accuracy["shift"] != stats.ALL)]
figure = plots.panels(single, plots.accuracy_lines, columns=3, chance=1 / len(classes))
for axes in figure.axes:
    axes.set_xlabel("step of the shift")
note = f"{confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(errors.n[:-1])} images per shift and step; bands: {note}; dotted: guessing")
plots.save(figure, layout.figures / "degradation_accuracy", accuracy)

# distance
encoder = encoders.ImageEncoder(image_encoder, device=device)
away = neighbours.distances(sets, shifted, encoder, folder / "distances.parquet")
means = neighbours.means(away)
means.pivot(index="scale", columns="shift", values=list(neighbours.SPACES)).round(3)

# line
by_distance = shiftfindings.against_distance(errors, means, space="pixel")
arms = shiftfindings.averaged(errors, shiftfindings.arms(errors.models))
thick = shiftfindings.against_distance(arms, means, space="pixel")
figure = plots.panels(thick, plots.estimate_lines, columns=3, x="distance", hue="model", label="change of accuracy")
for axes, (_, part) in zip(figure.axes, by_distance.groupby("shift"), strict=True):
    wide = part.pivot(index="distance", columns="model", values="estimate")
    axes.plot(wide.index, wide, color="0.6", linewidth=0.5, zorder=0)
    axes.set_xlabel("1-NN distance, pixels")

# line-save
plots.caption(figure, f"{plots.extent(errors.n[:-1])} images per step; bands: {note}, mean over networks; grey: single classifiers")
plots.save(figure, layout.figures / "degradation_distance", pd.concat([by_distance, thick]))
named = {space: away.rename(columns={space: "distance"}) for space in neighbours.SPACES}
linearity = {space: degradation.linearity(found, table, settings=settings) for space, table in named.items()}
pd.concat(linearity, names=["distance"]).reset_index("distance").set_index(["distance", "shift"]).round(3)

# slope
slopes = shiftfindings.steepness(found, away, space="pixel", settings=settings)
table = stats.tabulate(slopes.samples, slopes, slopes.bins).drop(columns="scale")
pooled = table[table["shift"] == stats.ALL].drop(columns="shift")
training_of = pooled["model"].str.endswith(shiftfindings.AUGMENTED).map({True: "RandAugment", False: "plain"})
pairs = pooled.assign(training=training_of, model=pooled["model"].str.removesuffix(shiftfindings.AUGMENTED))
both = pairs[pairs.groupby("model")["training"].transform("size") == 2]
start = accuracy[(accuracy["shift"] == stats.ALL) & (accuracy["scale"] == 0)].set_index("model")["estimate"]
pooled.set_index("model").join(start.rename("accuracy at step 0")).sort_values("estimate").round(3)

# slope-figure
figure, axes = plt.subplots(figsize=(4.5, 2.6))
plots.estimate_pairs(axes, both, y="model", hue="training", label="change of accuracy per unit of pixel distance")
axes.axvline(0, color="0.6", linewidth=0.8, linestyle=":")
plots.caption(figure, f"n = {errors.n[-1]} trajectories of three shifts; lines: {note}")
plots.save(figure, layout.figures / "degradation_slopes", table)

# sets
three = shiftfindings.by_set(answers, reference, settings=settings)
drops = stats.accuracy_drop(three)
figure = plots.panels(drops[drops["shift"] != stats.ALL], plots.drop_lines, columns=2)
for axes in figure.axes:
    axes.set_xlabel("step of the shift")
plots.caption(figure, f"{reference}, {runs} runs each; {plots.extent(three.n[:-1])} images per step; bands: {note}")
plots.save(figure, layout.figures / "degradation_sets", drops)

# paper
print("taking part:", ", ".join(shiftfindings.learned(errors, least)))
results = shiftfindings.findings(errors, slopes, three, least=least)
published = pd.read_csv(paths.PUBLISHED / "degradation.csv")
verdicts = shiftfindings.against(results, published)
of_all = shiftfindings.findings(errors, slopes, three, least=0.0)
everybody = shiftfindings.against(of_all, published)["verdict"]
verdicts.assign(everybody=everybody).set_index("finding").drop(columns="quantity").round(3)

# bridge
how = {"labels": encoders.read_labels(labels), "settings": Evaluation(**evaluation), "device": device}
replies = bridge.ask(sets, shifted, classes, **how, folder=folder / "zoo")
zoo = stats.outcomes(replies)
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
judged = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
benchmark = stats.error_shares(stats.outcomes(judged, kept), settings=replace(settings, seed=seed + 1))
ranked = {"space": "pixel", "settings": settings}
tau = bridge.agreement(zoo, away, benchmark, reference=rce_reference, **ranked)

# bridge-figure
beside = bridge.both(shiftfindings.steepness(zoo, away, **ranked), benchmark, reference=rce_reference)
figure, axes = plt.subplots(figsize=(4, 3))
axes.plot(beside["rce"], beside["slope"], "o", markersize=4)
axes.set(xlabel=f"mean rCE on the benchmark ({rce_reference} = 1)", ylabel="robustness slope, all three shifts")
plots.caption(figure, f"{len(beside)} classifiers; {len(zoo.trajectories)} and {benchmark.n[-1]} trajectories")
plots.save(figure, layout.figures / "degradation_bridge", beside)
pd.DataFrame(tau).T.rename_axis("Kendall's tau with the order by rCE").round(3)

# answer
fits = linearity["pixel"].set_index("shift")["estimate"].drop(stats.ALL)
line = ", ".join(f"{share:.2f} ({shift})" for shift, share in fits.items())
lost = results["decline"]
loss = f"At the last step classifiers lose {lost['estimate']:.2f} ({lost['low']:.2f} to {lost['high']:.2f}) of accuracy"
tally = [int((own == word).sum()) for own in (verdicts["verdict"], everybody) for word in ("holds", "not contradicted")]
stand = "of {} findings {} hold and {} stay uncontradicted, {} and {} if classifiers that learned nothing take part"
stand = stand.format(len(verdicts), *tally)
answer.update(Markdown(f"**{loss}; a line in the distance explains {line} of the change; {stand}.**"))

# outputs
metrics = {"findings": results, "findings_of_all": of_all, "slope": stats.records(pooled, "model"), "tau": tau}
metrics |= {f"linearity_{space}": stats.records(table, "shift") for space, table in linearity.items()}
last = drops[(drops["scale"] == three.bins[-1]) & (drops["shift"] == stats.ALL)]
metrics["drop_by_training_set"] = stats.records(last, "model")
tables.write_metrics(layout.metrics / "degradation.json", metrics)
print(f"metrics/degradation.json: {', '.join(metrics)}")
