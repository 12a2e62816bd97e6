# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import EngFormatter

from cnslib import axes, axisplots, counterparts, heldout, paths, plots, stats, tables, verdicts
from cnslib.analyses import Axes
from cnslib.claims import Evidence

# settings
plots.use_style()
pd.set_option("display.max_colwidth", None, "display.max_rows", None)  # claims are sentences
layout = paths.Layout(out)
settings = Axes(resamples, confidence, seed, members, reference, margin)

# axes-table
folder = layout.artifacts("evaluation")
parameters = pd.read_csv(folder / "models.csv").set_index("model")["parameters"]
relatives = pd.read_csv(paths.PUBLISHED / "axes.csv")
published = counterparts.themselves(relatives, list(parameters.index), {"classifier": "paper_model"})
here = published["classifier"].isna() | published["classifier"].isin(parameters.index)
shown = published.loc[here, ["axis", "classifier", "paper_model", "parameters_millions", "note"]]
shown.insert(2, "parameters", shown["classifier"].map(parameters).astype("Int64").astype(str).replace("<NA>", ""))
shown.set_index(["axis", "classifier"]).fillna("")

# data
answers = tables.read_answers(sorted(folder.glob("*.parquet")))
found = stats.outcomes(answers, pd.read_parquet(layout.artifacts("filtering") / "kept.parquet"))
errors, failures = stats.error_shares(found, settings=settings), stats.failure_shares(found, settings=settings)
plain = heldout.spread(heldout.shares(folder, settings=settings), errors.models)
evidence = Evidence(errors, failures, plain, parameters.to_dict(), settings)
print(f"{len(errors.models)} classifiers, {errors.n[-1]} trajectories, {plain.n[-1]} held-out images")

# drop-figure
drops = axes.along(stats.accuracy_drop(errors), members)
pooled = drops[drops["shift"] == stats.ALL]
note = f"at the right: {confidence:.0%} bootstrap over (class, seed) at the last scale"

# drop-panels
width = 8 + 0.15 * max(0, max(map(len, errors.models)) - 14)  # inches; names of timm are long
figure, grid = plt.subplots(2, 2, figsize=(width, 5), sharex=True, sharey=True, layout="constrained")
for panel, (axis, names) in zip(grid.flat, members.items(), strict=True):
    axisplots.axis_lines(panel, pooled[pooled["axis"] == axis], order=names, ordered="size" in axis)
    panel.set_title(axis)
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.caption(figure, f"n = {errors.n[-1]} trajectories; {note}")
plots.save(figure, layout.figures / "axes_drop", pooled)

# spread
spread = axes.deviations_along(errors, members).set_index("axis")
spread.round(3)

# shifts-architecture
by_shift = drops[drops["shift"] != stats.ALL]
note = f"{plots.extent(by_shift['n'])} trajectories per shift; {note}"
table = by_shift[by_shift["axis"] == "architecture"]
figure = plots.panels(table, axisplots.axis_lines, order=members["architecture"], ordered=False)
plots.caption(figure, note)
plots.save(figure, layout.figures / "axes_architecture", table)

# shifts-convolution
table = by_shift[by_shift["axis"] == "convolution size"]
figure = plots.panels(table, axisplots.axis_lines, order=members["convolution size"], ordered=True)
plots.caption(figure, note)
plots.save(figure, layout.figures / "axes_convolution", table)

# shifts-transformer
table = by_shift[by_shift["axis"] == "transformer size"]
figure = plots.panels(table, axisplots.axis_lines, order=members["transformer size"], ordered=True)
plots.caption(figure, note)
plots.save(figure, layout.figures / "axes_transformer", table)

# shifts-pretraining
table = by_shift[by_shift["axis"] == "pre-training"]
figure = plots.panels(table, axisplots.axis_lines, order=members["pre-training"], ordered=False)
plots.caption(figure, note)
plots.save(figure, layout.figures / "axes_pretraining", table)

# guard
guard = axes.guarded(errors, reference=reference)
print(f"rCE is the mean over {guard['defined'].sum()} of {len(guard)} shifts")
guard.drop(columns="model").round(3)

# corruption-published
table4 = pd.read_csv(paths.PUBLISHED / "corruption_error.csv").set_index("model")
named = published["paper_model"].map
published["rCE"] = published["rce_table3"].fillna(named(table4["rce"]))
published["CE"] = named(table4["ce"])
table5 = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
published["accuracy"] = named(table5.mean(axis=1))
published["average drop"] = named(table5[0.0] - table5.mean(axis=1))

# corruption-figure
measures = {"rCE": stats.relative_corruption_error(errors, reference=reference), "average drop": axes.average_drop(errors)}
chosen = {name: axes.along(table[table["shift"].isin([stats.MEAN, stats.ALL])], members) for name, table in measures.items()}
sizes = [len(names) for names in members.values()]

# corruption-panels
figure, grid = plt.subplots(4, 2, figsize=(7, 1.8 + 0.22 * sum(sizes)), sharex="col", sharey="row", height_ratios=sizes)
for row, axis in zip(grid, members, strict=True):
    beside = published[published["axis"] == axis].set_index("classifier")["rCE"]
    for panel, (name, table), paper, line in zip(row, chosen.items(), (beside, None), (1, 0), strict=True):
        axisplots.axis_dots(panel, table[table["axis"] == axis], label=name, reference=line, published=paper)
        panel.label_outer()
    row[0].set_title(axis)
figure.tight_layout()

# corruption-save
text = f"rCE: n = {guard.loc[guard['defined'], 'n'].sum()} trajectories of {guard['defined'].sum()} shifts, dotted: {reference}"
plots.caption(figure, f"{text}; drop: n = {errors.n[-1]}; lines: {confidence:.0%} bootstrap; diamonds: the paper's counterparts")
plots.save(figure, layout.figures / "axes_corruption_error", pd.concat(chosen, names=["measure"]).reset_index("measure"))

# size-figure
size = pd.concat(chosen, names=["measure"]).reset_index("measure").query("axis.str.contains('size')")
size = size.assign(parameters=size["model"].map(parameters))

# size-panels
figure, grid = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
for panel, name in zip(grid, chosen, strict=True):
    plots.estimate_lines(panel, size[size["measure"] == name], x="parameters", hue="axis", label=name)
    panel.set(xlim=(size["parameters"].min() / 1.3, size["parameters"].max() * 1.3), xscale="log")
    panel.xaxis.set_major_formatter(EngFormatter())
panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.caption(figure, f"n = {errors.n[-1]} trajectories (rCE: those of the shifts where it is defined); bands: {confidence:.0%} bootstrap")
plots.save(figure, layout.figures / "axes_size", size)

# paper-rce
comparison = axes.compared(chosen["rCE"], published, column="rCE")
comparison.round(3)

# paper-others
mean_ce = stats.corruption_error(errors, reference=reference).query("shift == @stats.MEAN")
accuracy = axes.average_accuracy(errors).query("shift == @stats.ALL")
others = {"CE": axes.along(mean_ce, members), "accuracy": axes.along(accuracy, members), "average drop": chosen["average drop"]}
both = {name: axes.compared(table, published, column=name).set_index(["axis", "model"]) for name, table in others.items()}
pd.concat(both, axis=1).round(3)

# paper-order
values = {"rCE": axes.relative_errors(errors, reference=reference), "average drop": axes.drops(errors).mean(-1)[:, -1]}
order = [axes.order_agreement(table, errors, published, column=name) for name, table in values.items()]
pd.concat(order).set_index(["measure", "axis"]).round(2)

# claims
listed = verdicts.read(paths.PUBLISHED / "claims.csv")
claims = verdicts.judge(counterparts.claims(listed, counterparts.roles(relatives, errors.models)), evidence)
named = {"rule": "holds if", "source": "where", "drop_verdict": "by drop", "details": "more in"}
names = ["claim", "source", "quantity", "rule", "published", "n", "estimate", "low", "high", "verdict", "drop_verdict", "details"]
claims[names].set_index("claim").rename(columns=named).round(3).fillna("")

# claims-figure
figure, panel = plt.subplots(figsize=(3.2, 0.2 * len(claims)))
axisplots.verdict_rows(panel, claims)
plots.caption(figure, f"{confidence:.0%} intervals before, verdicts after Holm's correction in each family; hollow: by average drop")
plots.save(figure, layout.figures / "axes_claims", claims[["id", "family", *names, *claims.filter(like="drop_").columns.difference(names)]])
plt.close(figure)  # the table says the same
print("figures/axes_claims.pdf: all verdicts on one page")

# disagree
relative = claims[claims["measure"] == "rCE"]
apart = relative[relative["verdict"] != relative["drop_verdict"]]
rows = [f"- {row.claim}: *{row.verdict}* by rCE, *{row.drop_verdict}* by average drop" for row in apart.itertuples()]
Markdown("\n".join([f"The two measures disagree on {len(apart)} of {len(relative)} claims.", "", *rows]))

# answer
widest = spread["estimate"].idxmax()
sure = axes.stands_out(errors, members, widest)
record = spread.loc[widest]
size = f"their average accuracy drops have a standard deviation of {record['estimate']:.3f} ({record['low']:.3f} to {record['high']:.3f})"
first = f"Classifiers differ most by {widest}" if sure else f"No axis stands out with certainty; classifiers differ most by {widest}"
counts = claims["verdict"].value_counts().reindex(verdicts.WORDS, fill_value=0).tolist()
second = "Of the {} claims of the paper's section 5.3, {} hold here, {} turn out opposite, {} stay undecided and {} are not measured"
answer.update(Markdown(f"**{first}: {size}. {second.format(len(claims), *counts)}.**"))

# outputs
metrics = {name.replace(" ", "_").lower(): stats.records(table.drop_duplicates("model"), "model") for name, table in chosen.items()}
metrics["deviation"] = stats.records(spread.reset_index(), "axis")
metrics["claims"] = stats.records(claims[claims["n"] > 0], "id")
tables.write_metrics(layout.metrics / "axes.json", metrics)
print(f"metrics/axes.json: {', '.join(metrics)}")
