# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.stats
import statsmodels.formula.api as smf
from matplotlib import pyplot as plt

from cnslib import counterparts, heldout, line, lineplots, paths, plots, size, stats, tables
from cnslib.analyses import Line

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Line(resamples, confidence, seed, id_accuracy, families, sizes, pretrained)

# data
folder = layout.artifacts("evaluation")
shifted = tables.read_answers(sorted(folder.glob("*.parquet")))
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
errors = stats.error_shares(stats.outcomes(shifted, kept), settings=settings)
unshifted = replace(settings, seed=seed + 1)  # its images are not those of the benchmark, nor is its luck
catalog = heldout.shares(folder, settings=unshifted) if id_accuracy == "catalog" else None
errors = errors if catalog is None else counterparts.restricted(errors, catalog.models)
found = {axes: line.points(errors, catalog, axes=axes) for axes in line.AXES}

# leverage
linear, models = found["linear"], errors.models
names = {name for members in families.values() for name in members}
print(f"{len(models)} classifiers; in the families but not evaluated: {', '.join(sorted(names - set(models))) or 'none'}")
weights = line.leverage(linear)
weights.sort_values("leverage", ascending=False, ignore_index=True).round(3)

# scatter-figure
slopes = {axes: line.slopes(points) for axes, points in found.items()}
first, last = linear.scales[0], linear.scales[-1]
ends = slopes["linear"].query("scale == @last and shift != @stats.ALL").sort_values("r", ascending=False)["shift"]
shown = {(shift, last): f"{shift}, scale {last:g}" for shift in (ends.iloc[0], ends.iloc[-1])}
shown = {(stats.ALL, scale): f"{stats.ALL}, scale {scale:g}" for scale in (first, last)} | shown

# scatter-draw
points = pd.concat([line.scatter(own, shift=shift, scale=scale) for own in found.values() for shift, scale in shown])
figure = lineplots.scatter_grid(points, shown)
note = f"{confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"a point is a classifier, {plots.extent(points['n'])} trajectories; bars: {note}, cut at the frame; dotted: no loss")
plots.save(figure, layout.figures / "line_scatter", points)

# slopes-figure
both = pd.concat([table.assign(axes=axes) for axes, table in slopes.items()], ignore_index=True)
figure = plots.panels(both, lineplots.slope_lines, columns=5)
bands = f"dark: other images, {note}, the line drawn anew; light: other classifiers, least squares"
plots.caption(figure, f"{len(models)} classifiers, {plots.extent(errors.n)} trajectories; {bands}")
plots.save(figure, layout.figures / "line_slopes", both)

# tests-figure
free = line.noise_free(linear)
tests = slopes["linear"].assign(free=free["estimate"], free_low=free["low"], free_high=free["high"])
figure = lineplots.maps(tests, alpha=1 - confidence)
plots.caption(figure, f"{len(models)} classifiers, {plots.extent(errors.n)} trajectories; p values take the classifiers as independent")
plots.save(figure, layout.figures / "line_tests", tests)

# gain-figure
supervised = line.mask(models, [name for family in pretrained for name in families[family]])
lines = {"line of all classifiers": None, "line of the supervised ones": supervised}
gains = pd.concat([line.mean_gains(found[a], drawn).assign(line=name, axes=a) for name, drawn in lines.items() for a in found])
figure = lineplots.gain_panels(gains, by="line")
plots.caption(figure, f"{plots.extent(gains['n'])} trajectories; bars: {note}, the line drawn anew")
plots.save(figure, layout.figures / "line_gain", gains)

# gain-map
single = line.gains(linear).query("scale == @last")
order = gains[(gains["line"] == "line of all classifiers") & (gains["axes"] == "linear")].sort_values("estimate", ascending=False)["model"]
figure = lineplots.gain_map(single, order=list(order))
plots.caption(figure, f"scale {last:g}, linear axes, line of all; {plots.extent(errors.n)} trajectories; {note}; numbers: certain")
plots.save(figure, layout.figures / "line_gain_by_shift", single)

# left-out-figure
without = line.left_out(linear, families)
at_last = without.query("shift == @stats.ALL and scale == @last")
full = at_last.set_index("left_out").loc[line.NONE]
figure, axes = plt.subplots(figsize=(4.5, 0.8 + 0.2 * len(at_last)))
plots.estimate_dots(axes, at_last, y="left_out", label=f"slope at scale {last:g}, all shifts, without", reference=full["estimate"])
plots.caption(figure, f"{len(models)} classifiers in all, {full['n']} trajectories; {note}; dotted: all")
plots.save(figure, layout.figures / "line_left_out", without)

# left-out-table
jumps = at_last[["left_out", "models", "change_estimate", "change_low", "change_high"]].drop(full.name, errors="ignore")
jumps.sort_values("change_estimate", key=abs, ascending=False, ignore_index=True).head(5).round(3)

# size-figure
parameters = pd.read_csv(folder / "models.csv").set_index("model")["parameters"].to_dict()
sized = size.sized(linear, parameters, {name: families[name] for name in sizes})
partial = size.partial(linear, sized)
figure, axes = plt.subplots(figsize=(4.5, 2.8))
lineplots.size_bars(axes, partial[partial["shift"] == stats.ALL])
plots.caption(figure, f"all shifts, n = {errors.n[-1]} trajectories; size: logarithm of the number of weights; bars: {note}")
plots.save(figure, layout.figures / "line_size", partial)

# correlation
correlation = size.noise_free(linear, sized)
kinds = {"plain": size.pooled(linear, sized), "without noise": correlation}
pd.concat(kinds, names=["partial correlation"]).droplevel(1).reset_index().round(3)

# doubling
doubling = size.per_doubling(linear, sized, supervised)
above = [doubling["of"] != "gain", doubling["low"] > 0, doubling["high"] < 0]
doubling["advantage"] = np.select(above, ["", "remains", "turns into a loss"], "is not seen")
rest = doubling[doubling["of"] == "gain"].drop(columns="of")
doubling.round(4)

# paper-lines
accuracies = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
validation = pd.read_csv(paths.PUBLISHED / "validation.csv").set_index("model")
published = validation[validation["supervised"]].join(accuracies)
_, published = counterparts.alike(pd.DataFrame(index=models), published)
ours = line.slopes(linear, supervised).query("shift == @stats.ALL").set_index("scale")
ours = ours.loc[ours.index.intersection(accuracies.columns)]
fits = {scale: smf.ols("ood ~ accuracy", published.assign(ood=published[scale])).fit() for scale in ours.index}
close = {scale: scipy.stats.pearsonr(published["accuracy"], published[scale]) for scale in ours.index}

# paper-table
slope = pd.DataFrame({s: [fit.params["accuracy"], *fit.conf_int(1 - confidence).loc["accuracy"]] for s, fit in fits.items()}).T
r = pd.DataFrame({s: [found_r.statistic, *found_r.confidence_interval(confidence)] for s, found_r in close.items()}).T
blocks = {"slope": [ours[["estimate", "models_low", "models_high"]], slope], "R": [ours[["r", "r_low", "r_high"]], r]}
heads = [["ours", "low", "high"], ["published", "published_low", "published_high"]]

# paper-sides
sides = {name: [side.set_axis(head, axis=1) for side, head in zip(block, heads, strict=True)] for name, block in blocks.items()}
comparison = pd.concat({name: pd.concat(pair, axis=1) for name, pair in sides.items()}, names=["quantity", "scale"])
apart = (comparison["low"] > comparison["published_high"]) | (comparison["high"] < comparison["published_low"])
comparison["difference"] = comparison["ours"] - comparison["published"]
comparison.assign(n=supervised.sum(), verdict=np.where(apart, "differs", "compatible")).round(3)

# claims-roles
played = counterparts.roles(pd.read_csv(paths.PUBLISHED / "axes.csv"), models)
modern = [played[name] for name in ("convnext", "deit")]
end, numbers = ours.iloc[-1], ["n", "estimate", "low", "high"]
relation = dict(zip(numbers, end[["models", "r", "r_low", "r_high"]], strict=True))

# claims-line
claims = [(f"R at scale {end.name:g}, other classifiers", "Fig. 22; Tables 5, 7", round(r.loc[end.name].iloc[0], 3), 0, 1, relation)]
claims += [("lines that rise with p below 0.05", "Fig. 21", "most", 0.5, 1, line.followed(linear, supervised))]
claims += [(f"growth of the slope, {axes} axes", "Fig. 23", "above 0", 0, 1, line.steeper(own, supervised)) for axes, own in found.items()]
if set(modern) <= set(models):
    better = line.gain_difference(linear, *modern, supervised)
    claims += [("gain of ConvNeXt minus that of DeiT", "Fig. 24", "above 0", 0, 1, better)]

# claims-size
claims += [(f"partial correlation, {row['family']}", "suppl. F", -0.358, 0, -1, row[numbers]) for _, row in correlation.iterrows()]
claims += [(f"gain per doubling, {row['family']}", "suppl. F", "not above 0", 0, -1, row[numbers]) for _, row in rest.iterrows()]

# claims-table
heads = ["claim", "source", "published", "threshold", "sign"]
table = pd.DataFrame([dict(zip(heads, claim, strict=False)) | dict(claim[-1]) for claim in claims]).rename(columns={"estimate": "ours"})
table["difference"] = table["ours"] - pd.to_numeric(table["published"], errors="coerce")
sides = table[["low", "high"]].sub(table["threshold"], axis=0).mul(table["sign"], axis=0)
cases = [sides.min(axis=1, skipna=False) > 0, sides.max(axis=1, skipna=False) < 0]
table.assign(verdict=np.select(cases, ["agrees", "differs"], "undecided")).drop(columns=["threshold", "sign"]).round(3)

# deit
deit3 = validation[validation.index.str.startswith("deit3")].join(accuracies).assign(weights=lambda t: np.log2(t["parameters_millions"]))
deit3["ood"] = deit3[[scale for scale in accuracies if scale > 0]].mean(axis=1)
result = smf.ols("ood ~ weights + accuracy", deit3).fit()
t = result.tvalues["weights"]
print(f"{len(deit3)} models: partial correlation {t / np.sqrt(t**2 + result.df_resid):+.2f}, p = {result.pvalues['weights']:.2f}")

# answer
top = slopes["linear"].query("shift == @stats.ALL and scale == @last").iloc[0]
certain = (slopes["linear"].query("shift != @stats.ALL")["p_holm"] < 1 - confidence).agg(["sum", "size"])
verb = "follows" if top["r_low"] > 0 else "runs against" if top["r_high"] < 0 else "cannot be said to follow"
text = f"At scale {last:g}, accuracy under the shifts {verb} accuracy without one: R = {top['r']:.2f} ({top['r_low']:.2f} to "
text += f"{top['r_high']:.2f} for other classifiers like these); {certain['sum']} of {certain['size']} lines of single shifts and scales"
text += " are significant after Holm's correction." + " For equal accuracy without a shift, twice the weights change it" * (len(rest) > 0)
left = rest.apply(" by {estimate:+.3f} ({low:+.3f} to {high:+.3f}) in {family}".format_map, axis=1)
answer.update(Markdown(f"**{text}{','.join(left)}{'.' * (len(rest) > 0)}**"))

# outputs
at_end = {"slope": slopes["linear"], "r_noise_free": free}
metrics = {name: stats.records(table.query("scale == @last"), "shift") for name, table in at_end.items()}
metrics |= {"r_other_models": {"n": top["models"], "estimate": top["r"], "low": top["r_low"], "high": top["r_high"]}}
for name, title in zip(["gain", "gain_supervised_line"], lines, strict=True):
    metrics[name] = stats.records(gains[(gains["axes"] == "linear") & (gains["line"] == title)], "model")

# outputs-size
for name, own in {"partial_correlation": kinds["plain"], "partial_noise_free": correlation, "gain_per_doubling": rest}.items():
    metrics[name] = stats.records(own, "family")
tables.write_metrics(layout.metrics / "line.json", metrics)
print(f"metrics/line.json: {', '.join(metrics)}")
