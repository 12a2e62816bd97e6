# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import json

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import counterparts, paths, plots, stats, strips, tables
from cnslib.analyses import Accuracy

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Accuracy(reference, resamples, confidence, seed)

# data
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
found = stats.outcomes(predictions, kept)
first, last = found.scales[0], found.scales[-1]
print(f"{len(found.models)} classifiers, {len(found.trajectories)} trajectories, scales {found.scales}")
found.trajectories.groupby(["class", "shift"]).size().unstack("shift").fillna(0).astype(int)

# estimates
errors = stats.error_shares(found, settings=settings)
accuracy, drops, mean = stats.accuracy(errors), stats.accuracy_drop(errors), stats.mean_accuracy(errors)
overall = mean[mean["shift"] == stats.ALL].set_index("scale")
overall[["n", "estimate", "low", "high"]].round(3)

# accuracy-figure
by_shift = accuracy[accuracy["shift"] != stats.ALL]
chance = 1 / len(json.loads(paths.resolve(labels).read_text()))
figure = plots.panels(by_shift[by_shift["model"].isin(shown)], plots.accuracy_lines, columns=5, chance=chance)
note = f"trajectories per shift; bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(by_shift['n'])} {note}; dotted: guessing")
plots.save(figure, layout.figures / "accuracy_by_shift", by_shift)

# drop-figure
ordered = pd.concat([drops[drops["shift"] == stats.ALL], drops[drops["shift"] != stats.ALL]])
figure = plots.panels(ordered[ordered["model"].isin(shown)], plots.drop_lines, columns=5)
plots.caption(figure, f"n = {errors.n[-1]} trajectories over all shifts, {plots.extent(by_shift['n'])} {note}")
plots.save(figure, layout.figures / "accuracy_drop", ordered)

# drop-reading
losses = mean.pivot(index="shift", columns="scale", values="estimate").drop(index=stats.ALL)
losses = (losses[first] - losses[last]).sort_values()
own = drops.query("shift == @stats.ALL and scale == @last").set_index("model")["estimate"].sort_values()
Markdown(
    f"- *{losses.index[-1]}* costs most at scale {last}: {losses.iloc[-1]:.2f}; *{losses.index[0]}* least: {losses.iloc[0]:.2f}.\n"
    f"- Over all shifts *{own.index[-1]}* loses most, {own.iloc[-1]:.2f}, and *{own.index[0]}* least, {own.iloc[0]:.2f}."
)

# failures
distribution = stats.failure_distribution(stats.failure_shares(found, settings=settings))
bars = distribution[(distribution["shift"] != stats.ALL) & (distribution["scale"] != stats.NEVER)]
figure = plots.panels(bars[bars["model"].isin(shown)], plots.failure_bars, columns=3)
plots.caption(figure, f"{plots.extent(bars['n'])} trajectories per shift; lines: {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "failure_points", bars)

# survivors
never = distribution.query("shift == @stats.ALL and scale == @stats.NEVER").set_index("model")
points = stats.failure_points(predictions, kept)
recovered = (found.wrong[..., :-1] & ~found.wrong[..., 1:]).any(-1).sum(0)
counts = points.groupby("model")["failed"].agg(failed="sum", trajectories="size").assign(recovered=recovered)
counts.join(never[["estimate", "low", "high"]].add_prefix("never: ")).round(3)

# strips
shuffled = points.sample(frac=1, random_state=seed).assign(late=points["failure_point"] > 0)
lost = shuffled.sort_values("late", ascending=False, kind="stable").drop_duplicates("shift").sort_values("shift")
grid = strips.pictures(layout.artifacts("generation"), lost[tables.TRAJECTORY], found.scales)

# strips-figure
figure = strips.failures(grid, lost, found.scales)
plots.caption(figure, "columns: slider scale; frame: failure point of the classifier named")
plots.save(figure, layout.figures / "failure_strips", lost)

# ce
measures = {"CE": stats.corruption_error, "rCE": stats.relative_corruption_error}
ratios = {name: measure(errors, reference=reference) for name, measure in measures.items()}
means = {name: table[table["shift"] == stats.MEAN].set_index("model") for name, table in ratios.items()}
left_out = {name: sorted(set(table.loc[~table["defined"], "shift"]) - {stats.MEAN}) for name, table in ratios.items()}
print("shifts left out:", left_out)
pd.concat({name: table[["estimate", "low", "high"]] for name, table in means.items()}, axis=1).round(3)

# ce-figure
width = 6.5 + 0.15 * max(0, max(map(len, found.models)) - 14)  # inches; names of timm are long
figure, both = plt.subplots(1, 2, figsize=(width, 0.8 + 0.22 * len(found.models)), layout="constrained")
for axes, (name, table) in zip(both, means.items(), strict=True):
    plots.estimate_dots(axes, table.reset_index(), y="model", label=f"{name} (lower is better)", reference=1.0)
note = f"{confidence:.0%} bootstrap over (class, seed), none where the interval is open"
plots.caption(figure, f"n = {errors.n[-1]} trajectories; lines: {note}; dotted: {reference}")
plots.save(figure, layout.figures / "accuracy_corruption_error", pd.concat(ratios, names=["measure"]).reset_index("measure"))

# paper-curve
table5 = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
published = table5.reindex(columns=found.scales)
own = accuracy[accuracy["shift"] == stats.ALL].pivot(index="model", columns="scale", values="estimate")
sides = dict(zip(["ours", "published"], counterparts.alike(own, published), strict=True))
curves = pd.DataFrame({side: table.mean() for side, table in sides.items()}).reindex([first, 1.0, last])
fall, early = curves.loc[first] - curves.loc[last], curves.loc[first] - curves.loc[1.0]
shape = {"accuracy at scale 0": curves.loc[first], "drop at the last scale": fall, "share of it by scale 1": early / fall}

# paper-shape
table4 = pd.read_csv(paths.PUBLISHED / "corruption_error.csv").set_index("model")[["ce", "rce"]]
own = pd.DataFrame({name: table["estimate"] for name, table in means.items()})
both = dict(zip(["ours", "published"], counterparts.alike(own, table4), strict=True))
shape["rank correlation of CE and rCE"] = pd.Series({side: table.corr("spearman").iloc[0, 1] for side, table in both.items()})
comparison = pd.DataFrame(shape).T.assign(difference=lambda t: t["ours"] - t["published"])
cases = [comparison["difference"].abs() <= 0.1, comparison["ours"] * comparison["published"] > 0]
comparison.assign(verdict=np.select(cases, ["close", "same direction"], "differs")).round(3)

# paper-shift
digitised = pd.read_csv(paths.PUBLISHED / "accuracy_by_shift.csv").pivot(index=["shift", "model"], columns="scale", values="accuracy")
digitised = digitised.reindex(columns=found.scales)
single = (digitised[first] - digitised[last]).rename("published").reset_index("model")
each = drops.query("scale == @last").set_index(["shift", "model"])["estimate"]
hardest = counterparts.beside(single, each, losses)
hardest["difference"] = hardest["ours"] - hardest["published"]
cases = [hardest["difference"].abs() <= 0.1, hardest["ours"] * hardest["published"] > 0]
hardest.assign(verdict=np.select(cases, ["close", "same direction"], "differs")).round(3)

# paper-order
names = {"first": "paper_first", "second": "paper_second"}  # where the paper's own classifiers were evaluated, they take part
claims = counterparts.themselves(pd.read_csv(paths.PUBLISHED / "orderings.csv"), found.models, names)
claims = claims.query("first in @found.models and second in @found.models")
chosen = "shift == @stats.ALL and scale == @last and model == @row.first"
paired = [stats.drop_against(errors, reference=row.second).query(chosen) for row in claims.itertuples()] or [drops.head(0)]
order = pd.concat(paired).set_axis(claims["claim"])[["estimate", "low", "high"]].rename(columns={"estimate": "ours"})
falls = published[first] - published[last]
order["published"] = falls.loc[claims["paper_first"]].to_numpy() - falls.loc[claims["paper_second"]].to_numpy()

# paper-verdicts
order["difference"] = order["ours"] - order["published"]
cases = [order["low"] * order["high"] <= 0, order["ours"] * order["published"] > 0]
order.assign(verdict=np.select(cases, ["undecided", "same order"], "opposite order")).round(3)

# answer
start, end = (overall.loc[scale] for scale in (first, last))
said = [f"{row['estimate']:.2f} ({row['low']:.2f} to {row['high']:.2f})" for row in (start, end)]
text = f"Averaged over {len(found.models)} classifiers, accuracy falls from {said[0]} to {said[1]} at scale {last}"
answer.update(Markdown(f"**{text}, and {losses.index[-1]} is the hardest shift.**"))

# outputs
ends = stats.records(overall.loc[[first, last]].reset_index(), "scale")
metrics = {f"accuracy_scale_{scale:g}": ends[scale] for scale in ends}
metrics |= {name.lower(): stats.records(table.reset_index(), "model") for name, table in means.items()}
metrics["never_failed"] = stats.records(never.reset_index(), "model")
tables.write_metrics(layout.metrics / "accuracy.json", metrics)
print(f"metrics/accuracy.json: {', '.join(metrics)}")
