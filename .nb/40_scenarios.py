# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import crossing, encoders, paths, photoshow, plots, scenarioshow, stats, subjects, surroundings, within, world
from cnslib.chapters import Scenarios
from cnslib.scenarios import NAMES, SUMMED

# imports-more
from cnslib import regression, robustness, scenarioclaims, siblings, tables

# settings
plots.use_style()
layout = paths.Layout(out)
asked = {"classifiers": classifiers, "cutouts": cutouts, "backbones": backbones, "images": images}
graded = {"severities": severities, "photo_severities": photo_severities, "drawing_steps": drawing_steps, "guidance": guidance}
training = {"training_images": training_images, "steps": steps, "batch_size": batch_size}
pace = {"learning_rate": learning_rate, "average": average}
settings = Scenarios(resamples, confidence, seed, **asked, **graded, **training, **pace)
folder = layout.artifacts("scenarios")

# photographs
photographs = subjects.photographs(paths.PHOTOS, count=cutouts, seed=seed)
names = ["unshifted", *NAMES, scenarioshow.TRANSPARENT, SUMMED]
there = [name for name in names if name != surroundings.NAME]
sheet, places = scenarioshow.sheet(photographs[:: -(-cutouts // 5)], there, side=128, seed=seed)
figure, axes = plt.subplots(figsize=(9, 0.6 + 9 * len(sheet) / len(there)))
plots.contact_sheet(axes, sheet, rows=list(places["class"]), columns=there)
axes.tick_params(axis="x", labelrotation=90)
plots.save(figure, layout.figures / "scenarios_samples", places)

# garments
pool = world.garments(paths.GARMENTS, "heldout")
plain = subjects.garments(pool, "heldout", classes, count=images, seed=seed)
drawing = {"pipeline": paths.resolve(pipeline), "settings": settings, "device": device, "folder": folder / "drawn"}
garments = surroundings.draw_all(plain, **drawing)
sheet, places = scenarioshow.sheet(garments[::images], names, side=64, seed=seed)
figure, axes = plt.subplots(figsize=(9, 0.6 + 9 * len(sheet) / len(names)))
plots.contact_sheet(axes, sheet, rows=list(places["class"]), columns=names)
axes.tick_params(axis="x", labelrotation=90)

# garments-save
plots.save(figure, layout.figures / "scenarios_classes", places)
print(f"{len(photographs)} photographs, {len(garments)} garments, {len(NAMES)} scenarios that keep a part and one that does not")

# ex1
labelled = {"labels": encoders.read_labels(labels), "settings": settings, "device": device}
places_of = {"folder": folder / "garments", "drawn": folder / "drawn", "pipeline": paths.resolve(pipeline)}
garment_replies = crossing.garments(classes, **labelled, **places_of)
photo_replies = crossing.photographs(settings=settings, device=device, folder=folder / "photographs")
found = {"garments": stats.outcomes(garment_replies), "photographs": stats.outcomes(photo_replies)}
pd.DataFrame({name: [len(own.models), own.wrong.size] for name, own in found.items()}, index=["classifiers", "answers"])

# severity
shares = {name: stats.error_shares(own, settings=settings) for name, own in found.items()}
curves = stats.accuracy(shares["garments"]).rename(columns={"scale": "severity"}).query("shift != @stats.ALL")
figure = plots.panels(curves, plots.estimate_lines, x="severity", hue="model", label="accuracy", columns=5)
plots.caption(figure, f"n = {len(garments)} garments per scenario; bands: {confidence:.0%} bootstrap over garments")
plots.save(figure, layout.figures / "scenarios_severity", curves)

# failure
failures = stats.failure_distribution(stats.failure_shares(found["garments"], settings=settings)).query("shift != @stats.ALL")
figure = plots.panels(failures, plots.failure_bars, columns=5)
photoshow.rename_severity(figure)
plots.caption(figure, f"n = {len(garments)} garments per scenario; lines: {confidence:.0%} bootstrap over garments")
plots.save(figure, layout.figures / "scenarios_failure", failures)

# ex2
course = within.Course(settings, classes, encoders.read_labels(labels), layout.root / "checkpoints" / "scenarios", device)
trained_replies = within.outcome(course, folder=folder / "within")
ex1, ex2 = (robustness.accuracies(replies, within.TRAINED, settings=settings) for replies in (garment_replies, trained_replies))
photo_ex1 = robustness.accuracies(photo_replies, within.TRAINED, settings=settings)
print(f"{len(ex2.models)} backbones, {len(ex2.models) * len(ex2.names)} trainings of {steps} steps")

# table1
table1 = pd.concat([robustness.table1({"EX1": ex1, "EX2": ex2}), robustness.table1({"EX1": photo_ex1})], ignore_index=True)
robustness.printed_form(table1)

# accuracy
figure = plots.panels(table1, scenarioshow.scenario_dots, by="model", columns=4)
sizes = f"n = {photo_ex1.n} photographs (lite) or {ex1.n} garments"
plots.caption(figure, f"{sizes}; lines: {confidence:.0%} bootstrap over objects")
plots.save(figure, layout.figures / "scenarios_accuracy", table1)

# losses
everything = robustness.accuracies(garment_replies, crossing.EVERY, settings=settings)
every_photo = robustness.accuracies(photo_replies, [name for name in crossing.EVERY if name != surroundings.NAME], settings=settings)
sets = {"garments": everything, "photographs": every_photo}
costs = {name: scenarioshow.losses(own, own.names[1:]) for name, own in sets.items()}
pd.concat({name: own.set_index("scenario") for name, own in costs.items()}, axis=1).round(3)

# summed
apart = {name: (own.of("random background") - own.of(SUMMED))[..., 0].mean(1) for name, own in sets.items()}
summed = {name: robustness.record(values, sets[name]) for name, values in apart.items()}
pd.DataFrame(summed).T.rename(columns={"estimate": "composite minus sum"}).round(3)

# printed
siblings.scores().round(3)

# score
scores = robustness.scores(ex1, ex2, within.PRINTED)
figure, axes = plt.subplots(figsize=(4.5, 0.8 + 0.3 * len(ex1.models)))
plots.estimate_pairs(axes, scores, y="model", hue="convention", label="robustness score")
plots.caption(figure, f"n = {ex1.n} garments, {len(within.PRINTED)} scenarios; lines: {confidence:.0%} bootstrap over garments")
plots.save(figure, layout.figures / "scenarios_score", scores)

# regression
tested = {"garments": (garment_replies, list(NAMES)), "photographs": (photo_replies, [n for n in NAMES if n != surroundings.NAME])}
formulas = {"garments": regression.FORMULA, "photographs": regression.FORMULA.removesuffix(" + label")}
cases = {name: regression.cases(*own, reference=sorted(own[0]["model"])[0]) for name, own in tested.items()}
ways = {"groups": "object", "confidence": confidence}
linear = {name: regression.linear(own, formulas[name], **ways) for name, own in cases.items()}
mixed = {name: regression.mixed(own, formulas[name], **ways) for name, own in cases.items()}
pd.concat({"clustered": linear["garments"].set_index("variable"), "mixed": mixed["garments"][0].set_index("variable")}, axis=1).round(4)

# regression-figure
told = {name: {"clustered": linear[name], "mixed": mixed[name][0]} for name in linear}
rows = pd.concat([own.assign(regression=way, set=name) for name, ways_of in told.items() for way, own in ways_of.items()])
rows["scenario"] = rows["variable"].str.extract(r"scenario\[(.*)\]", expand=False)
figure = plots.panels(rows.dropna(), scenarioshow.coefficient_dots, by="set", columns=2)
figure.set_size_inches(8, 4.5)
plots.caption(figure, f"{plots.extent(rows['n'])} objects per set; lines: {confidence:.0%} intervals; dotted: no change")
plots.save(figure, layout.figures / "scenarios_regression", rows.dropna())
print({name: f"{parts['group'] / (parts['group'] + parts['residual']):.0%} of the variance" for name, (_, parts) in mixed.items()})

# table3
regression.against_table3(linear).round(3)

# claims
claims = scenarioclaims.against_paper(ex1, ex2, photo_ex1)
claims.round(3)

# answer
behind = {name: own[~own["scenario"].isin(["bright object", "blurred object", SUMMED])].iloc[0] for name, own in costs.items()}
cost = {name: f"on {name} it is '{row['scenario']}', {scenarioshow.told(row)}" for name, row in behind.items()}
verdict = "Not at the object alone" if all(row["low"] > 0 for row in behind.values()) else "The background is not shown to matter"
worst = f"Of the scenarios that leave the object as it is, one costs most accuracy: {cost['photographs']}; {cost['garments']}"
gain = claims.iloc[-1].rename({"ours": "estimate"})
after = f"{steps} steps of training on random backgrounds change accuracy before them by {scenarioshow.told(gain)}"
answer.update(Markdown(f"**{verdict}. {worst}. {after}.**"))

# outputs
metrics = {f"loss_{name}": stats.records(own, "scenario") for name, own in costs.items()} | {"composite_minus_sum": summed}
metrics |= {f"table1_{way}": stats.records(own, "key") for way, own in scenarioshow.keyed(table1)}
metrics["score"] = {way: stats.records(own, "model") for way, own in scores.groupby("convention")}
metrics |= {f"regression_{name}": stats.records(own.query("n > 0"), "variable") for name, own in linear.items()}
metrics["claims"] = stats.records(claims.rename(columns={"ours": "estimate"}), "quantity")
tables.write_metrics(layout.metrics / "scenarios.json", metrics)
print(f"metrics/scenarios.json: {', '.join(metrics)}")
