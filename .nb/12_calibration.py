# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import alignment, calibration, encoders, paths, perceived, plots, rulers, stats, tables
from cnslib.analyses import Calibration
from cnslib.rulers import RULERS

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Calibration(resamples, confidence, seed, scenes=scenes, severities=severities, steps=steps)

# rendered
names = encoders.read_labels(labels)
clip_model, encoder = encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device)
judges = alignment.Judges(clip_model, encoder, encoders.Oracle(oracle, labels=names, device=device))
folder = layout.artifacts("calibration")
scene_table = rulers.rendered(shifts, classes, judges=judges, settings=settings, folder=folder / "rendered")
truth = calibration.arrange(scene_table, list(RULERS))
straight = calibration.correlations(truth, settings=settings)
straight.pivot(index="shift", columns=["measure", "ruler"], values="estimate").round(2)

# correlation-figure
spearman = straight[straight["measure"] == "spearman"]
figure, panels = plt.subplots(1, len(RULERS), figsize=(9, 0.9 + 0.2 * len(shifts)), sharex=True, sharey=True, layout="constrained")
for axes, (ruler, part) in zip(panels, spearman.groupby("ruler", sort=False), strict=True):
    plots.estimate_dots(axes, part, y="shift", label="Spearman's rho", reference=1.0)
    axes.set_title(ruler)
plots.caption(figure, f"{plots.extent(spearman['n'])} garments, {severities + 1} severities; lines: {confidence:.0%} bootstrap")
plots.save(figure, layout.figures / "calibration_correlation", straight)

# bias-figure
true_means = calibration.means(truth, settings=settings)
scene_means = calibration.tabulate(true_means.samples, true_means, true_means.bins)
drawn = scene_means[scene_means["ruler"].isin(["oracle", "asked"]) & (scene_means["shift"] != stats.ALL)]
figure = plots.panels(drawn, plots.ruler_lines, columns=5)
note = f"bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(drawn['n'])} rendered held-out garments per shift; {note}")
plots.save(figure, layout.figures / "calibration_rulers", scene_means)

# named-rendered
true_named = stats.accuracy(stats.error_shares(truth.naming, settings=settings))
true_named.pivot(index="shift", columns="scale", values="estimate").round(2)

# named-generated
seen = rulers.sights(layout.artifacts("generation"), shifts, oracle=judges.oracle, folder=folder / "oracle")
laid = rulers.lay(seen, tables.read(layout.artifacts("filtering") / "scores.parquet", tables.scores))
found = calibration.arrange(laid, list(RULERS))
first, last = found.naming.scales[0], found.naming.scales[-1]
named = stats.accuracy(stats.error_shares(found.naming, settings=settings))
named.pivot(index="shift", columns="scale", values="estimate").round(2)

# named-instead
shares = laid[laid["scale"] == last].groupby("shift")["named"].value_counts(normalize=True).rename("share of images").reset_index()
start = [table.loc[table["scale"] == 0, "oracle"].mean() for table in (scene_table, laid)]
display(Markdown(f"The oracle's severity at 0: {start[0]:.2f} in rendered garments, {start[1]:.2f} in generated ones. At scale {last}:"))
shares.groupby("shift").head(2).round(2)

# rising
rising = calibration.rising(found, settings=settings)
rising.pivot(index="shift", columns="ruler", values="estimate")[list(RULERS)].round(2)

# rising-figure
cells = calibration.rising_by_class(found, settings=settings)
figure, panels = plt.subplots(1, len(RULERS), figsize=(10, 1.6 + 0.2 * len(shifts)), sharey=True, layout="constrained")
for axes, ruler in zip(panels, RULERS, strict=True):
    grid = cells[cells["ruler"] == ruler].pivot(index="shift", columns="class", values="estimate")
    sns.heatmap(grid, ax=axes, vmin=0, vmax=1, center=0.5, cmap="vlag_r", cbar=axes is panels[-1], cbar_kws={"label": "rising steps"})
    axes.set(title=ruler, xlabel="", ylabel="")
plots.caption(figure, f"{plots.extent(cells['n'])} trajectories per slider, {len(found.naming.scales) - 1} steps each")
plots.save(figure, layout.figures / "calibration_rising", cells)

# map-figure
means = calibration.means(found, settings=settings)
maps = calibration.monotone(means)
curves, progress = calibration.tabulate(maps.samples, maps, maps.bins), calibration.progress(maps, calibration.moving(means))
figure = plots.panels(progress, plots.progress_lines, columns=5)
plots.caption(figure, f"{plots.extent(maps.n)} trajectories per shift; {note}; a ruler that does not rise with certainty is left out")
both = curves.merge(progress, on=["shift", "ruler", "scale", "n"], suffixes=("", "_share"))
plots.save(figure, layout.figures / "calibration_severity", both)

# summary
summary = calibration.summary(means, maps)
moved = summary[summary["low"] > 0]
bent = moved[(moved["half_low"] > last / 2) | (moved["half_high"] < last / 2)]
pairs = summary["shift"] + " by " + summary["ruler"]
still, early = pairs[summary["low"] <= 0], pairs[moved.index[moved["ends"] < last]]
display(Markdown(f"No certain rise: {', '.join(still) or 'none'}. Saturated before scale {last:g}: {', '.join(early) or 'none'}."))
wide = summary.rename(columns={"estimate": "rise", "half_estimate": "half"}).pivot(index="shift", columns="ruler", values=["rise", "half"])
wide.reindex(columns=list(RULERS), level="ruler").round(2)

# equal-figure
equal = calibration.equal_steps(maps, calibration.moving(means), steps=steps)
figure, panels = plt.subplots(1, len(RULERS), figsize=(10, 1.0 + 0.22 * len(shifts)), sharey=True, layout="constrained")
for axes, ruler in zip(panels, RULERS, strict=True):
    plots.step_dots(axes, equal[equal["ruler"] == ruler], rows=sorted(shifts))
    axes.set_title(ruler)
kinds = f"dots: {steps} equal steps of the ruler; {note.replace('bands', 'lines')}; grey: equal scales"
plots.caption(figure, f"{plots.extent(maps.n)} trajectories per shift; {kinds}")
plots.save(figure, layout.figures / "calibration_steps", equal)

# user
own = summary[summary["ruler"] == "asked"].set_index("shift")
chosen = (own["half_estimate"] - last / 2).abs().fillna(0).idxmax()  # NaN: no certain rise
curve = curves[(curves["ruler"] == "asked") & (curves["shift"] == chosen)]
bottom, top = curve["estimate"].min(), curve["estimate"].max()
wanted = bottom + np.array([0.25, 0.5, 0.75, 1.25]) * (top - bottom)
pd.DataFrame({"shift": chosen, "severity": wanted, "scale": calibration.scales_for(curve, wanted)}).round(3)

# strip
garment = calibration.typical(laid[laid["shift"] == chosen], "asked")
nominal, own = np.linspace(0, last, steps + 1), equal.query("ruler == 'asked' and shift == @chosen")["estimate"].fillna(0)
grid = np.array(found.naming.scales)
nearest = {name: grid[np.abs(grid - np.c_[asked]).argmin(axis=1)] for name, asked in {"scales": nominal, "severity": own}.items()}
strips = {f"equal {name}": garment.set_index("scale").loc[scales].reset_index() for name, scales in nearest.items()}
pictures = alignment.gallery(layout.artifacts("generation"), strips, columns=steps + 1)

# strip-figure
figure, axes = plt.subplots(figsize=(5.5, 2.1))
plots.contact_sheet(axes, pictures, rows=list(strips), columns=[f"step {i}" for i in range(steps + 1)])
shown = pd.concat(strips, names=["strip"]).reset_index("strip")
labels_below = "; ".join(f"{name}: " + ", ".join(f"{scale:g}" for scale in part["scale"]) for name, part in strips.items())
plots.caption(figure, f"{chosen}, {garment['class'].iloc[0]}. Scales shown, {labels_below}")
plots.save(figure, layout.figures / "calibration_strips", shown[["strip", *tables.KEY, "asked"]])

# accuracy
whole = laid[laid["keep"]]
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
kept = whole[tables.TRAJECTORY].drop_duplicates()
errors = stats.error_shares(stats.outcomes(predictions, kept), settings=settings)
kept_means = calibration.means(calibration.arrange(whole, [perceived.NOMINAL, *RULERS]), settings=settings)
kept_maps, moving = calibration.monotone(kept_means), calibration.moving(kept_means)
drawn = perceived.curves(errors, kept_maps, moving)
lines = drawn.assign(low=np.nan, high=np.nan)  # so many bands would hide the lines; the csv has them

# accuracy-figure
figure, panels = plt.subplots(2, 3, figsize=(9, 5), sharey=True, layout="constrained")
for axes, ruler in zip(panels.flat, kept_maps.models, strict=False):
    plots.estimate_lines(axes, lines[lines["ruler"] == ruler], x="severity", hue="shift", label="accuracy")
    axes.set(title=RULERS.get(ruler, "slider scale"), xlabel=ruler)
panels.flat[-1].set_axis_off()
panels.flat[-1].legend(*axes.get_legend_handles_labels(), loc="center", fontsize="small")
plots.caption(figure, f"mean of {len(errors.models)} classifiers; {plots.extent(kept_maps.n)} kept trajectories per shift; intervals: csv")
plots.save(figure, layout.figures / "calibration_accuracy", drawn)

# orders
orders = perceived.orders(errors, kept_maps, moving)
orders = orders[orders["ruler"] != perceived.NOMINAL]
orders.round(2)

# standings
standings = perceived.standings(errors, kept_maps, moving)
table = standings[standings["order"] == "classifiers"].pivot(index="name", columns="ruler", values="estimate")
table[[name for name in kept_maps.models if name in table]].sort_values(perceived.NOMINAL, ascending=False).round(3)

# hardness-figure
hard = standings[standings["order"] == "shifts"]
figure, panels = plt.subplots(1, len(kept_maps.models), figsize=(10, 0.9 + 0.2 * len(shifts)), sharey=True, layout="constrained")
for axes, (ruler, part) in zip(panels, hard.groupby("ruler", sort=False), strict=False):
    plots.estimate_dots(axes, part.sort_values("name"), y="name", label="hardness", reference=0.0)
    axes.set_title(ruler)
plots.caption(figure, f"{plots.extent(kept_maps.n)} kept trajectories per shift; {note.replace('bands', 'lines')}")
plots.save(figure, layout.figures / "calibration_hardness", hard)

# paper-table
every = calibration.arrange(laid, [*RULERS, "caption"])
starts = {"all steps": first, "steps from above scale 0": found.naming.scales[1]}
parts = {name: calibration.rising(every, settings=settings, start=start) for name, start in starts.items()}
claims = pd.concat(parts, names=["steps"]).reset_index("steps").query("shift == @stats.ALL").drop(columns="shift")
claims = claims.replace({"ruler": {"caption": "CLIP score, caption in the shift alone"} | RULERS}).rename(columns={"estimate": "ours"})
claims = claims.assign(published=0.73, difference=claims["ours"] - 0.73)  # appendix H
cases = [claims["low"] > 0.73, claims["high"] < 0.73]
claims.assign(verdict=np.select(cases, ["higher", "lower"], "agrees")).set_index(["ruler", "steps"]).sort_index().round(3)

# answer
total = rising[rising["shift"] == stats.ALL].set_index("ruler")
said = {ruler: f"{row['estimate']:.0%} ({row['low']:.0%} to {row['high']:.0%})" for ruler, row in total.iterrows()}
more = f"A step up the scale shows more of the shift in {said['alignment']} of all cases by CLIP and in {said['oracle']} by the oracle"
word = "but equal steps are not equal severities" if len(bent) else "and no map is known to be bent"
uneven = f"{word}: in {len(bent)} of {len(moved)} maps half of the rise does not lie at half of the scale"
tau = orders.dropna(subset="estimate").groupby("order")["estimate"].agg(["min", "max"])
spans = [f"{row['min']:.2f} to {row['max']:.2f} for the {what}" for what, row in tau.iterrows()]
answer.update(Markdown(f"**{more}, {uneven}. Kendall's tau of the order on the scale and that on a ruler is {' and '.join(spans)}.**"))

# outputs
rulers_apart = {ruler: stats.records(part, "shift") for ruler, part in spearman.groupby("ruler")}
metrics = {"spearman_rendered": rulers_apart, "rising": stats.records(total.reset_index(), "ruler")}
metrics["named_last_scale"] = stats.records(named[named["scale"] == last], "shift")
metrics["rise"] = {ruler: stats.records(part, "shift") for ruler, part in summary.groupby("ruler")}
metrics |= {f"tau_{what}": stats.records(part, "ruler") for what, part in orders.groupby("order")}
metrics |= {f"hardness_{ruler}": stats.records(part, "name") for ruler, part in standings.query("order == 'shifts'").groupby("ruler")}
tables.write_metrics(layout.metrics / "calibration.json", metrics)
print(f"metrics/calibration.json: {', '.join(metrics)}")
