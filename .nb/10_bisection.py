# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import bisection, closeups, continuous, drawings, encoders, failure, models, paths, plots, stats, tables, zoom
from cnslib.analyses import Bisection
from cnslib.classifiers import load
from cnslib.config import Generation, identifier

# settings
plots.use_style()
layout = paths.Layout(out)
sample = {"shifts": shifts, "classes": classes, "seeds": seeds, "classifiers": classifiers, "scans": scans, "scan_step": scan_step}
settings = Bisection(resamples=resamples, confidence=confidence, seed=seed, resolution=resolution, **sample)

# plan
files = [layout.artifacts("evaluation") / f"{identifier(name)}.parquet" for name in classifiers]
predictions = pd.concat([tables.read(path, tables.predictions) for path in files], ignore_index=True)
chosen = bisection.choose(pd.read_parquet(layout.artifacts("filtering") / "kept.parquet"), settings=settings)
found = stats.outcomes(predictions[predictions["class"].isin(classes)], chosen)
intervals = failure.intervals(found)
plan = bisection.plan(intervals, scales=scales, settings=settings)
plan

# studio
pipe, tokens = models.load_pipeline(paths.resolve(pipeline), device), layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
jury = {"labels": encoders.read_labels(labels), "device": device, "preprocessing": evaluation["preprocessing"]}
asked = [load(name, evaluation["classifiers"][name], **jury) for name in classifiers]
origin, way = models.origin(paths.resolve(pipeline), tokens, classes), drawings.chosen(drawing)
sampler = way.single(pipe, settings=way.settings(Generation(**generation)))
folder, images = layout.artifacts("bisection"), layout.artifacts("generation")
studio = closeups.Studio(sampler, origin, layout.artifacts("sliders"), asked, folder)

# drift
known = tables.trajectories(predictions, shifts).merge(chosen, on=tables.TRAJECTORY)
drift = closeups.drift(studio, images, known, bisection.keys_of(chosen)[0], scale=scales[1])
pd.Series(drift, name="a picture of the grid drawn again, alone").to_frame().T.round(4)

# bisect
points, drawn = bisection.bisect(studio, intervals, scales=scales, settings=settings)
answers = closeups.joined(tables.predictions, known, drawn)
tables.write(points, folder / "points.parquet", bisection.points_schema)
pictures = drawn[tables.KEY].drop_duplicates()
requests = bisection.requests(points, resolution=resolution)
needed = len(requests[tables.KEY].drop_duplicates())
print(f"{needed} pictures for the bisection, {plan.loc['total', 'expected']} expected; {len(pictures)} with the scans")

# closeup
shown = continuous.showcase(points, known, scales=scales)
lines = continuous.cell_lines(shown, answers, resolution=resolution)
key = bisection.keys_of(shown)[0]
film = closeups.film(images, folder, *key)
strip = dict(zip(film["scale"], tables.pictures(film, "strip"), strict=True))
print("{}: {}, seed {}".format(*key))

# closeup-figure
whole, cell = {scale: strip[scale] for scale in scales}, {scale: strip[scale] for scale in sorted(set(lines["scale"]))}
figure = zoom.closeup(whole, cell, lines, dict(zip(shown["model"], shown["until"], strict=True)))
plots.caption(figure, "{}: {}, seed {}; above 0 the answer is right; numbers: rounds; dashed: bisected failure points".format(*key))
plots.save(figure, layout.figures / "bisection_closeup", lines)

# delay
readings = continuous.readings(points)
columns = {name: continuous.by_shift(readings, name, settings=settings).set_index("shift") for name in ("delay", "bias", "place")}
pd.concat(columns, axis=1).round(3)

# survival-shifts
grid = stats.failure_shares(found, settings=settings)
fine = stats.failure_shares(continuous.refined(found, points, resolution=resolution), settings=settings)
by_shift = continuous.survival(continuous.pooled(grid), continuous.pooled(fine))
figure = plots.panels(by_shift, zoom.survival_boxes)
note = f"trajectories; band: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"mean over {len(classifiers)} classifiers; {plots.extent(grid.n)} {note}")
plots.save(figure, layout.figures / "bisection_shifts", by_shift)

# survival-models
by_model = continuous.survival(grid, fine).query("shift == @stats.ALL")
figure = plots.panels(by_model, zoom.survival_boxes, by="model")
plots.caption(figure, f"all shifts; n = {grid.n[-1]} {note}")
plots.save(figure, layout.figures / "bisection_models", by_model)

# means
reading = {"Eq. 3": (grid, False), "middle": (grid, True), "bisected": (fine, True)}
means = {name: continuous.mean_scale(shares, centred=centred) for name, (shares, centred) in reading.items()}
means |= {f"{name} minus bisected": means[name] - means["bisected"] for name in ("Eq. 3", "middle")}
table = continuous.tabulate(means, grid.models, n=int(grid.n[-1]), confidence=confidence)
table["text"] = [f"{row.estimate:.3f} ({row.low:.3f} to {row.high:.3f})" for row in table.itertuples()]
table.pivot(index="model", columns="reading", values="text")[list(means)]

# medians
ways = {"Eq. 3": failure.median_scale(grid), "interpolated": continuous.median_interpolated(grid), "bisected": failure.median_scale(fine)}
medians = pd.concat({name: part.set_index(["shift", "model"])["estimate"] for name, part in ways.items()}, axis=1)
reached = medians[np.isfinite(medians["bisected"]) & (medians["bisected"] > 0)]
print(f"{len(reached)} of {len(medians)} medians; mean deviation from the bisected one:")
(reached[["Eq. 3", "interpolated"]].sub(reached["bisected"], axis=0)).mean().round(3).to_frame().T

# ties
tied = continuous.tied(points)
separated = continuous.cautious_share(tied["separated"], tied, settings=settings)
tau = continuous.tau(means["Eq. 3"], means["bisected"], n=int(grid.n[-1]), confidence=confidence)
apart = {name: continuous.told_apart(means[name], confidence=confidence) for name in reading}
print("pairs of classifiers told apart:", {name: f"{count} of {pairs}" for name, (count, pairs) in apart.items()})
pd.DataFrame({"ties of the grid broken": separated, "Kendall's tau, Eq. 3 with bisected": tau}).T.round(3)

# scan
places = bisection.scanned(intervals, settings=settings) or [key]
scan = continuous.scan_lines(answers, places, scales=scales, step=scan_step)
figure = zoom.scan_maps(scan, points, grid=scales, limit=float(scan["margin"].abs().quantile(0.8)))
plots.caption(figure, f"{len(places)} trajectories at every {scan_step:g} of the scale; black: bisected failure points; white: the grid")
plots.save(figure, layout.figures / "bisection_scans", scan)

# scan-table
verdicts = continuous.verdicts(scan, points)
bracketed, starts = bisection.bracketed(verdicts), verdicts["grid_until"] > 0
never = np.isinf(verdicts["grid_until"])
cases = {"bisected point is the first failure": ("first", bracketed), "at most one flip, right at scale 0": ("monotone", starts)}
cases["never on the grid, but between its scales"] = ("hidden", never)
share = {name: continuous.cautious_share(verdicts.loc[of, flag], verdicts[of], settings=settings) for name, (flag, of) in cases.items()}
pd.DataFrame(share).T.round(3)

# crossing
guesses = continuous.crossings(points, known).assign(gain=lambda t: t["middle_error"] - t["crossing_error"])
names = {"middle_error": "middle of the cell, mean error", "crossing_error": "zero of the margin, mean error", "gain": "difference"}
guess = {name: continuous.mean_record(guesses[column], guesses, settings=settings) for column, name in names.items()}
pd.DataFrame(guess).T.round(3)

# cost
cost = bisection.cost(points, scales=scales, settings=settings)
figure, axes = plt.subplots(figsize=(4.2, 2.8))
zoom.cost_lines(axes, cost)
plots.caption(figure, f"n = {len(chosen)} trajectories, {len(classifiers)} classifiers, {len(readings)} brackets; scans not counted")
plots.save(figure, layout.figures / "bisection_cost", cost)

# paper-table
ours = {"Eq. 3 is late by": columns["delay"].loc[stats.ALL], "place of a failure in its cell": columns["place"].loc[stats.ALL]}
ours |= {"Kendall's tau of Eq. 3 with bisected": pd.Series(tau)}
claims = pd.DataFrame(ours).T.rename(columns={"estimate": "ours"}).assign(assumed=[0.0, 0.5, 1.0])
claims["difference"] = claims["ours"] - claims["assumed"]
inside = claims["assumed"].between(claims["low"] - stats.TINY, claims["high"] + stats.TINY)
judged = inside.map({True: "holds within our interval", False: "does not hold"}).where(claims["low"].notna(), "nothing to judge")
claims.assign(verdict=judged).round(3)

# paper-abrupt
steep, gradual = "cartoon style", "heavy snow"
sides = {"grid": grid, "bisected": fine} if {steep, gradual} <= set(grid.groups) else {}
rows = [{"resolution": name, **failure.more_abrupt(shares, steep, gradual)} for name, shares in sides.items()]
abrupt = pd.DataFrame(rows, columns=["resolution", "n", "estimate", "low", "high"]).rename(columns={"estimate": "ours"})
cases = [abrupt["low"] > 0, abrupt["high"] < 0]
verdict = np.select(cases, ["same direction", "opposite direction"], "undecided")
abrupt.assign(published="above 0 (section 5.3)", verdict=verdict).round(3)

# answer
late, first = columns["delay"].loc[stats.ALL], share["bisected point is the first failure"]
ratio = cost[cost["resolution"] == cost["resolution"].min()].set_index("method")["images"]
count = f"{ratio['shared']:,} pictures, where a uniform grid of that step needs {ratio['uniform']:,}"
delay = f"The grid alone reports a failure late by {late['estimate']:.2f} ({late['low']:.2f} to {late['high']:.2f}) of the slider's unit"
order = f"and its order of the classifiers agrees with the bisected one to Kendall's tau {tau['estimate']:.2f}"
span = f"{first['estimate']:.0%} ({first['low']:.0%} to {first['high']:.0%})"
scanned = f"where we drew everything, {span} of {first['n']} bisected points are the first failure"
answer.update(Markdown(f"**A failure is found to 1/{1 / resolution:g} of the slider's unit with {count}. {delay}, {order}; {scanned}.**"))

# outputs
metrics = {name: part.loc[stats.ALL].to_dict() for name, part in columns.items()}
metrics |= {"ties_broken": separated, "tau": tau, "images_ratio": continuous.image_ratio(points, scales=scales, settings=settings)}
metrics |= {"first_failure": first, "monotone": share["at most one flip, right at scale 0"]}
metrics |= {"hidden": share["never on the grid, but between its scales"], "guess": dict(zip(names, guess.values(), strict=True))}
metrics["mean_scale"] = {name: stats.records(table[table["reading"] == name], "model") for name in ("Eq. 3", "bisected")}
tables.write_metrics(layout.metrics / "bisection.json", metrics)
print(f"metrics/bisection.json: {', '.join(metrics)}")
