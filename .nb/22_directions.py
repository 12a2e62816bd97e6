# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import baselines, clustered, directions, encoders, health, models, paths, plots, stats, tables
from cnslib.config import Generation
from cnslib.generation import Sampler
from cnslib.studies import Directions

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Directions(resamples=resamples, confidence=confidence, seed=seed, shifts=shifts, seeds=seeds)
names = encoders.read_labels(labels)

# methods
pipe, tokens = models.load_pipeline(paths.resolve(pipeline), device), layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
sampler = Sampler(pipe, settings=Generation(**generation))
pairs = {m: [directions.contexts(sampler, shift, classes[-1], m, [0, 1])[-2:] for shift in shifts] for m in directions.TEXTUAL}
moved = {method: [(target - plain).norm(dim=-1) for plain, target in found] for method, found in pairs.items()}
lengths = pd.DataFrame({m: [row.norm().item() for row in rows] for m, rows in moved.items()}, index=shifts).round(1)
counts = pd.DataFrame({m: [row.count_nonzero().item() for row in rows] for m, rows in moved.items()}, index=shifts)
pd.concat({"distance": lengths, "tokens moved": counts}, axis=1)

# zero
images = layout.artifacts("generation")
own = directions.own_rows(directions.benchmark(images, shifts[0]), classes[0], scales=[0.0], seeds=1)
stored = tables.pictures(own, "unshifted").astype(int)
again = {m: directions.shifted(sampler, shifts[0], classes[0], 1, m, [0.0]).numpy() for m in directions.TEXTUAL}
pd.Series({method: abs(picture - stored).max() for method, picture in again.items()}, name="largest difference in grey levels")

# score
judge = health.Judge(encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device))
oracles = encoders.Oracle(oracle, labels=names, device=device)
origin = models.origin(paths.resolve(pipeline), tokens, classes)
study = directions.Study(sampler, origin, judge, oracles, images, layout.artifacts("directions"))
scores = directions.score(study, shifts, classes, scales=scales, seeds=seeds)
rows = baselines.per_trajectory(scores, labels=len(names))
print(f"{len(scores)} pictures judged, {len(rows) // len(directions.METHODS)} trajectories by {len(directions.METHODS)} methods")

# films
key = baselines.examples(rows, directions.PROMPTS)["works"]
strips = directions.films(study, [(method, *key) for method in directions.METHODS] + baselines.asked(rows), scales=scales)
figure, axes = plt.subplots(figsize=(5, 4.4))
sheet = baselines.sheet([strips[method, *key] for method in directions.METHODS], directions.METHODS, scales)
plots.contact_sheet(axes, sheet, rows=list(directions.METHODS), columns=[f"{scale:g}" for scale in scales])
plots.caption(figure, "{}: {}, seed {}; columns: scale of the slider, weight of the texts".format(*key))
plots.save(figure, layout.figures / "directions_methods", scores.merge(pd.DataFrame([key], columns=tables.TRAJECTORY)))

# curves
curve = baselines.curves(scores, settings=settings)
figure = plots.panels(curve, plots.estimate_lines, by="measure", x="scale", hue="method", label="cosine")
note = f"{plots.extent(curve['n'])} trajectories; bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, note)
plots.save(figure, layout.figures / "directions_curves", curve)

# plane
points, (figure, axes) = baselines.plane(curve), plt.subplots(figsize=(4.2, 3.2))
look = plots.looks(directions.METHODS)
for method, part in points.groupby("method", sort=False):
    axes.plot(part["gain_estimate"], part["structure_estimate"], markersize=4, linewidth=1.2, label=method, **look[method])
axes.set(xlabel="alignment gained with the shift", ylabel="structure kept")
axes.legend()
plots.caption(figure, plots.extent(curve["n"]) + " trajectories")
plots.save(figure, layout.figures / "directions_plane", points)

# summary
columns = list(baselines.MEASURES)
summary = baselines.summary(rows, columns, settings=settings)
against = baselines.against_slider(rows, columns, settings=settings)
summary["text"] = [f"{row.estimate:.2f} ({row.low:.2f} to {row.high:.2f}), n = {row.n}" for row in summary.itertuples()]
summary.pivot(index="measure", columns="method", values="text").loc[columns, list(directions.METHODS)]

# matched
equal = baselines.matched(scores, labels=len(names))
met = baselines.summary(equal, ["reached", "structure", "class_kept"], settings=settings)
paired = baselines.against_slider(equal, ["structure", "class_kept"], settings=settings)
met["text"] = [f"{row.estimate:.2f} ({row.low:.2f} to {row.high:.2f}), n = {row.n}" for row in met.itertuples()]
met.pivot(index="method", columns="measure", values="text").reindex(directions.METHODS)

# spread
gained = baselines.gains(scores).query("scale > 0 and method in ['slider', 'two prompts']").sort_values(["method", "scale"])
gained["column"] = np.where(gained["method"] == directions.SLIDER, gained["scale"].map("{:g}".format), "two prompts")
figure, axes = plt.subplots(figsize=(4.6, 2.8))
sns.boxplot(gained, x="column", y="gain", color="0.85", ax=axes)
axes.set(xlabel="slider scale", ylabel="alignment gained")
plots.caption(figure, f"n = {len(gained[gained['column'] == 'two prompts'])} trajectories per box; whiskers: 1.5 quartile ranges")
plots.save(figure, layout.figures / "directions_spread", gained[["method", *tables.KEY, "gain"]])

# fails
cases = baselines.examples(rows, directions.CLASS)
sheet = np.stack([strips[directions.CLASS, *key] for key in cases.values()])
figure, axes = plt.subplots(figsize=(5, 2.9))
lines = [f"{title}:\n{name} in\n{shift}" for title, (shift, name, _) in cases.items()]
plots.contact_sheet(axes, sheet, rows=lines, columns=[f"{scale:g}" for scale in scales])
moved = pd.DataFrame(list(cases.values()), columns=tables.TRAJECTORY).assign(case=list(cases), method=directions.CLASS)
plots.caption(figure, f"moved by the {directions.CLASS}; columns: weight")
plots.save(figure, layout.figures / "directions_fails", moved.merge(scores, on=["method", *tables.TRAJECTORY]))

# paper-records
named = {"summary": summary, "slider_minus": against, "equal_gain": met, "equal_gain_slider_minus": paired}
wide = {name: table.set_index(["method", "measure"])[["n", "estimate", "low", "high"]] for name, table in named.items()}
wide = {name: table.to_dict("index") for name, table in wide.items()}

# paper
last, level = wide["slider_minus"], wide["equal_gain_slider_minus"]
ours = {"rising": wide["summary"]["slider", "rising"], "gradual": last["two prompts", "largest"]}
ours |= {"structure": level["two prompts", "structure"], "consistent": last["class token", "rising"]}
ours |= {"stable": level["class token", "class_kept"]}
claims = clustered.judged(ours, pd.read_csv(paths.PUBLISHED / "directions.csv"))
claims.round(3)

# answer-parts
largest, share = (summary[summary["measure"] == name].set_index("method")["estimate"] for name in ("largest", "rising"))
gap = ours["structure"]
word = "No" if gap["low"] > 0 else "Perhaps"
kept = "the slider's minus theirs is {estimate:+.2f} ({low:+.2f} to {high:+.2f}, n = {n})".format(**gap)

# answer
text = f"{word}: two prompts make the whole way in one step, a slider {largest['slider']:.0%} of it in its largest"
text += f"; of the structure kept at equal gain, {kept if gap['n'] else 'nothing can be said, since no slider gains as much'}"
text += f"; and {share['slider']:.0%} of a slider's steps raise the shift, against {share['class token']:.0%} of the class token's."
answer.update(Markdown(f"**{text}**"))

# outputs
metrics = {name: {method: stats.records(part, "measure") for method, part in table.groupby("method")} for name, table in named.items()}
tables.write_metrics(layout.metrics / "directions.json", metrics)
print(f"metrics/directions.json: {', '.join(metrics)}")
