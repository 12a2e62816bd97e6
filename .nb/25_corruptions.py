# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import corruptions, encoders, orders, paths, plots, ranking, stats, tables
from cnslib.config import UNSHIFTED, Evaluation
from cnslib.studies import Corruptions

# settings
plots.use_style()
layout = paths.Layout(out)
graded = {"contrast": contrast, "contrast_severities": contrast_severities, "noise": noise, "blur": blur, "jpeg": jpeg}
bootstrap = {"resamples": resamples, "confidence": confidence, "seed": seed}
settings = Corruptions(**bootstrap, images=images, **graded, reference=reference)

# levels
levels = corruptions.levels(settings)
pd.DataFrame({name: pd.Series(own) for name, own in levels.items()}).rename_axis("severity").T

# examples
rows, plain = corruptions.originals(layout.locate(catalog), classes, images)
keys, first = list(rows[["class", "seed"]].itertuples(index=False, name=None))[:1], plain[:1]
columns = [0.0, *levels[corruptions.NOISE]]
strips = [[first[0], *(corruptions.corrupt(name, first, own[s], keys=keys)[0] for s in columns[1:])] for name, own in levels.items()]
figure, axes = plt.subplots(figsize=(6, 4))
plots.contact_sheet(axes, np.array(strips), rows=list(levels), columns=[f"{severity:g}" for severity in columns])
plots.caption(figure, f"one held-out picture of {keys[0][0]}; columns: severity")
plots.save(figure, layout.figures / "corruptions_examples", pd.DataFrame(levels).rename_axis("severity").reset_index())

# answers
how = {"labels": encoders.read_labels(labels), "classifiers": Evaluation(**evaluation), "device": device}
answered = corruptions.evaluate(layout.locate(catalog), classes, **how, settings=settings, folder=layout.artifacts("corruptions"))
predictions = tables.read_answers(answered.values())
errors = stats.error_shares(stats.outcomes(orders.common(predictions)), settings=settings)
mild = predictions["shift"].isin([corruptions.CONTRAST, UNSHIFTED])
by_contrast = stats.error_shares(stats.outcomes(predictions[mild]), settings=settings)
print(f"{len(errors.models)} classifiers, {errors.n[0]} pictures under {len(errors.groups) - 1} corruptions")

# drop-figure
drops = stats.accuracy_drop(errors).replace({"shift": {stats.ALL: "all corruptions"}})
figure = plots.panels(drops[drops["model"].isin(shown)], plots.drop_lines, columns=5)
for axes in figure.axes:
    axes.set_xlabel("severity")
note = f"{confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(errors.n)} corrupted pictures; bands: {note}")
plots.save(figure, layout.figures / "corruptions_drop", drops)

# contrast-figure
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3))
tables_of_contrast = {"drop": stats.accuracy_drop(by_contrast), "rank": ranking.ranks(by_contrast)}
for axes, table, draw in zip(panels, tables_of_contrast.values(), [plots.drop_lines, plots.rank_lines], strict=True):
    draw(axes, table[(table["shift"] == corruptions.CONTRAST) & table["model"].isin(shown)])
    axes.set_xlabel("severity of contrast")
panels[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
figure.tight_layout()

# contrast-save
plots.caption(figure, f"n = {by_contrast.n[0]} pictures; ranks among {len(errors.models)} classifiers; bands: {note}")
chosen = pd.concat(tables_of_contrast, names=["measure"]).reset_index("measure")
plots.save(figure, layout.figures / "corruptions_contrast", chosen[chosen["shift"] == corruptions.CONTRAST])
agreement = ranking.agreement(by_contrast)
fading = agreement[agreement["shift"] == corruptions.CONTRAST].set_index("scale")
fading[["n", "estimate", "low", "high"]].round(3)

# ce
measures = {"CE": orders.corruption_error, "rCE": stats.relative_corruption_error}
ratios = {name: measure(errors, reference=reference) for name, measure in measures.items()}
means = {name: table[table["shift"] == stats.MEAN].set_index("model") for name, table in ratios.items()}
left_out = {name: sorted(set(table.loc[~table["defined"], "shift"]) - {stats.MEAN}) for name, table in ratios.items()}
print("corruptions left out:", left_out)
pd.concat({name: table[["estimate", "low", "high"]] for name, table in means.items()}, axis=1).round(3)

# ce-figure
figure, both = plt.subplots(1, 2, figsize=(6.5, 0.8 + 0.22 * len(errors.models)), layout="constrained")
for axes, (name, table) in zip(both, means.items(), strict=True):
    plots.estimate_dots(axes, table.reset_index(), y="model", label=f"{name} (lower is better)", reference=1.0)
plots.caption(figure, f"{plots.extent(errors.n[:-1])} pictures per corruption; lines: {note}, none where open; dotted: {reference}")
plots.save(figure, layout.figures / "corruptions_error", pd.concat(ratios, names=["measure"]).reset_index("measure"))

# ranks
shifted = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
sliders = stats.error_shares(stats.outcomes(shifted, kept), settings=replace(settings, seed=seed + 1))
changes = orders.rank_changes(sliders, errors).rename(columns={"first": "sliders", "second": "corruptions"})
certain = int(((changes["low"] > 0) | (changes["high"] < 0)).sum())
changes.sort_values("estimate").set_index("model").round(1)

# ranks-figure
figure, axes = plt.subplots(figsize=(4.2, 0.8 + 0.2 * len(changes)))
plots.estimate_dots(axes, changes, y="model", label="rank under corruptions minus rank under sliders", reference=0)
plots.caption(figure, f"n = {errors.n[0]} pictures, {sliders.n[-1]} trajectories; lines: {confidence:.0%} bootstrap")
plots.save(figure, layout.figures / "corruptions_ranks", changes)

# agreement
pairs = {"sliders and corruptions": (sliders, errors)}
tau = {name: orders.rank_agreement(*both) for name, both in pairs.items()}
tau["originals and corruptions"] = orders.originals_agreement(errors)
tau["unshifted and sliders"] = orders.originals_agreement(sliders)
tau |= {f"sliders and {name}": orders.rank_agreement(sliders, errors, shift=name) for name in errors.groups[:-1]}
pd.DataFrame(tau).T.rename_axis("Kendall's tau of two orders").round(3)

# paper
flips = ranking.flips(by_contrast, shift=corruptions.CONTRAST)
ends = flips[(flips["scale"] == 0) & (flips["other_scale"] == by_contrast.bins[-1])]
between = orders.order_changes(errors)
claims = {"from level to level of contrast": ends["probability"], "from corruption to corruption": between["probability"]}
table = {claim: [len(found), int((found >= 0.95).sum()), int((found >= 0.5).sum())] for claim, found in claims.items()}
claimed = pd.DataFrame(table, index=["pairs", "change for certain", "change more likely than not"]).T
claimed.assign(verdict=np.where(claimed["change for certain"] > 0, "agrees: rankings change", "not certain here"))

# paper-tau
published = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy").corr("kendall")
end = fading.iloc[-1]
order = {"ours (contrast)": end["estimate"], "published (sliders)": published.iloc[0, -1]}
inside = end["low"] <= order["published (sliders)"] <= end["high"]
difference = order["ours (contrast)"] - order["published (sliders)"]
verdict = {"difference": difference, "verdict": "within our interval" if inside else "differs"}
pd.Series(order | verdict).to_frame("tau of the last level with the start")

# answer
said = {name: f"{tau[name]['estimate']:.2f} ({tau[name]['low']:.2f} to {tau[name]['high']:.2f})" for name in tau}
start = f"Kendall's tau between the order under corruptions and under sliders is {said['sliders and corruptions']}"
control = f"between corruptions and plain accuracy it is {said['originals and corruptions']}"
answer.update(Markdown(f"**{start}, {control}; {certain} of {len(changes)} classifiers change their place for certain.**"))

# outputs
metrics = {"tau": tau, **{name.lower(): stats.records(table.reset_index(), "model") for name, table in means.items()}}
mean = stats.mean_accuracy(errors)
heavy = mean[mean["scale"] == errors.bins[-1]]
metrics["mean_accuracy_at_severity_5"] = stats.records(heavy, "shift")
tables.write_metrics(layout.metrics / "corruptions.json", metrics)
print(f"metrics/corruptions.json: {', '.join(metrics)}")
