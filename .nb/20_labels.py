# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import alignment, encoders, filtering, labelling, paths, plots, screening, stats, tables, via
from cnslib import labels as labelset
from cnslib.config import Filtering

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Filtering(recall=recall, passes=passes, resamples=resamples, confidence=confidence, seed=seed)
images, folder, desk = layout.artifacts("generation"), layout.artifacts("labels"), layout.root / "build" / "labels"
rule = list(screening.RULES)[passes]

# aligned
names, shards = encoders.read_labels(labels), (layout.artifacts("filtering") / "alignment").glob("*.parquet")
aligned = pd.concat([tables.read(path, alignment.schema) for path in sorted(shards)], ignore_index=True)
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
right = labelset.hits(predictions, shifts, [expert, *peers])

# cut
real = labelset.catalog_alignment(layout.locate(catalog), classes, encoders.Clip(clip, device=device))
unshifted = aligned[aligned["scale"] == 0].drop_duplicates(["class", "seed"])
known = right.loc[pd.MultiIndex.from_frame(unshifted[tables.KEY]), expert].to_numpy(bool)
cut, strict = labelset.text_cut(unshifted.loc[known, "clip_class"].to_numpy(), clear), labelset.text_cut(real, clear)
reached = [int((unshifted["clip_class"] >= value).sum()) for value in (strict, cut)]
print(f"the paper's cut would be {strict:.2f}: {reached[0]} of {len(unshifted)} unshifted pictures reach it")
print(f"our cut is {cut:.2f}: {reached[1]} reach it, and the expert knows {known.sum()}")

# staged
aligned["stage"] = labelset.staged(aligned, right, cut=cut, expert=expert, peers=peers)
hard = labelset.with_pictures(images, aligned[aligned["stage"] == labelset.HARD])
inside = hard["shift"].isin(pair)
pd.crosstab(aligned["shift"], aligned["stage"]).reindex(shifts)

# export
via.export(hard[inside], desk / "to_label.json")
sheet = labelling.Sheet(hard[inside], desk / f"{annotator}.json") if annotator else Markdown("*No annotator: no contact sheet.*")
sheet

# answers
said = labelset.oracle_answers(hard, encoders.Oracle(oracle, labels=names, device=device))
own = [folder / "oracle.json", folder / "oracle_mirrored.json"]
for path, who in zip(own, said, strict=True):
    via.write(hard[inside], path, answers=dict(zip(via.file_names(hard[inside]), said.loc[inside, who], strict=True)))
said.loc[inside] = labelset.annotated([paths.resolve(file) for file in files] or own, hard[inside])
source = "labels: people on the pair, oracle elsewhere" if files else "labels: oracle, asked twice (no people)"
pd.crosstab(said["first"], said["second"]).reindex(index=via.ANSWERS, columns=via.ANSWERS, fill_value=0)

# kappa
chosen = {"pair": inside, "all shifts": hard["stage"] == labelset.HARD}
agreement = {name: labelset.kappa(hard[rows], said[rows], settings=settings) for name, rows in chosen.items()}
aligned["kind"] = labelset.joined(said).reindex(aligned.index, fill_value=labelset.IN)
labelled = labelset.labelled_table(aligned)
in_pair = labelset.parts(labelled, pair)["the pair"]
pd.DataFrame(agreement).T.round(3)

# stages-figure
kinds = labelled.assign(kind=labelled["kind"].where(labelled["stage"] == labelset.HARD, "in class, easy"))
both = {"the pair": kinds[in_pair], "all shifts": kinds}
order = {"columns": ["in class, easy", *labelset.KINDS], "fill_value": 0}
counted = pd.concat({name: pd.crosstab(part["scale"], part["kind"]).reindex(**order) for name, part in both.items()})
figure, axes = plt.subplots(1, 2, figsize=(6.5, 2.6))
for panel, name in zip(axes, both, strict=True):
    counted.loc[name].plot.bar(stacked=True, ax=panel, title=name, xlabel="slider scale", ylabel="images", legend=False, rot=0)

# stages-save
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
figure.tight_layout()
plots.caption(figure, f"n = {len(labelled):,} images of {len(labelled) // len(counted.loc['the pair'])} trajectories; {source}")
plots.save(figure, layout.figures / "labels_stages", counted.rename_axis(["part", "scale"]).reset_index())
easy = labelled[labelled["stage"] == labelset.EASY]
doubted = int((easy["class_probability"] < 1 / len(names)).sum())
print(f"stage (iii) trusted {len(easy)} easy images; the oracle alone would call {doubted} of them out of class")

# sheet
shuffled = labelled[(labelled["stage"] == labelset.HARD) & (labelled["scale"] == labelled["scale"].max())].sample(frac=1, random_state=seed)
picked = {kind: shuffled[shuffled["kind"] == kind].head(6) for kind in labelset.KINDS}
figure, axes = plt.subplots(figsize=(5.5, 3))
plots.contact_sheet(axes, alignment.gallery(images, picked, columns=6), rows=list(labelset.KINDS), columns=[""] * 6)
plots.caption(figure, source)
plots.save(figure, layout.figures / "labels_sheet", pd.concat(picked.values())[["kind", *tables.KEY]])

# thresholds
both = labelset.parts(labelled, pair)
limits = filtering.thresholds(labelled[both["the pair"]], recall)
keep = screening.verdicts(labelled, limits)
quality = screening.judged(labelled, keep, both, settings=settings)
areas = screening.areas(labelled, both, settings=settings)
areas.pivot(index="detector", columns="part", values=["estimate", "low", "high"]).round(3)

# roc-figure
curves = pd.concat([filtering.roc(labelled[chosen]).assign(part=part) for part, chosen in both.items()], ignore_index=True)
figure, panels = plt.subplots(1, 2, figsize=(6.8, 3.4))
dots = quality[(quality["measure"] != "accuracy") & quality["rule"].isin([screening.RELEASED, screening.TEXT])]
for axes, (part, chosen) in zip(panels, both.items(), strict=True):
    wide = dots[dots["part"] == part].pivot(index="rule", columns="measure", values="estimate").dropna()
    plots.roc_curves(axes, curves[curves["part"] == part], hue="detector", points=wide.rename_axis("name").reset_index())
    axes.set_title(f"{part}: {int(labelled.loc[chosen, 'oracle_ooc'].sum())} of {int(chosen.sum())} out of class")

# roc-save
plots.caption(figure, f"positive: out of class; thresholds at {recall:.0%} recall on the pair; {source}")
plots.save(figure, layout.figures / "labels_roc", curves)

# sweep-figure
votes = quality[quality["rule"] != screening.ALONE].assign(passes=lambda table: table["rule"].str[0].astype(int))
titles = {"tpr": "out of class, dropped (TPR)", "fpr": "in class, dropped (FPR)", "accuracy": "right verdicts"}
shown = votes.assign(measure=votes["measure"].map(titles)).dropna(subset="estimate")
figure = plots.panels(shown, plots.estimate_lines, by="part", x="passes", hue="measure", label="share")
sizes = plots.extent(votes.loc[votes["measure"] == "tpr", "n"])
plots.caption(figure, f"{sizes} out of class; x: tests to pass; bands: {confidence:.0%} bootstrap over (class, seed); {source}")
plots.save(figure, layout.figures / "labels_sweep", votes)
quality.pivot(index=["part", "rule"], columns="measure", values="estimate").round(3)

# alone
named = {"vote, released code": screening.RELEASED, "vote, paper's text": screening.TEXT}
against = {
    (name, part): screening.advantage(labelled[chosen], keep.loc[chosen, how], keep.loc[chosen, screening.ALONE], settings=settings)
    for name, how in named.items()
    for part, chosen in both.items()
    if chosen.any()
}
pd.DataFrame(against).T.rename_axis(["accuracy above CLIP alone", "part"]).round(3)

# transfer
by_shift = {shift: labelled["shift"] == shift for shift in shifts}
rules = {name: screening.RULES[name] for name in screening.COMPARED[1:]}
carried = screening.judged(labelled, screening.verdicts(labelled, limits, rules | screening.SINGLES), by_shift, settings=settings)
own_limits = {shift: filtering.thresholds(labelled[chosen], recall) for shift, chosen in by_shift.items()}
tuned = pd.concat([screening.verdicts(labelled[chosen], own_limits[shift], rules) for shift, chosen in by_shift.items()])
fitted = screening.judged(labelled, tuned.loc[labelled.index], by_shift, settings=settings)
both_ways = pd.concat([carried.assign(thresholds="from the pair"), fitted.assign(thresholds="from its own labels")], ignore_index=True)
sizes = plots.extent(both_ways.loc[both_ways["measure"] == "tpr", "n"])

# transfer-figure
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for axes, measure in zip(panels, ["tpr", "fpr"], strict=True):
    chosen = both_ways[(both_ways["rule"] == rule) & (both_ways["measure"] == measure)].dropna(subset="estimate")
    if len(chosen):
        plots.estimate_pairs(axes, chosen, y="part", hue="thresholds", label=titles[measure])
panels[0].axvline(recall, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
plots.caption(figure, f"{sizes} out of class; dotted: {recall:.0%}; lines: {confidence:.0%} bootstrap, none: all agree; {rule}; {source}")
plots.save(figure, layout.figures / "labels_transfer", both_ways)

# promise
found = carried[carried["measure"] == "tpr"]
promise = found[found["rule"].isin([*screening.SINGLES, rule])].pivot(index="part", columns="rule", values="estimate")
promise.insert(0, "out of class", found.drop_duplicates("part").set_index("part")["n"])
promise.reindex(shifts).round(2)

# screened
verdicts = keep[list(screening.COMPARED)].assign(**{screening.LABELS: ~labelled["oracle_ooc"]})
outcomes = stats.outcomes(predictions, labelled.loc[labelled["scale"] == 0, tables.TRAJECTORY])
kept = screening.whole(outcomes, labelled, verdicts)
errors = screening.screened(outcomes, kept, list(verdicts), settings=settings)
drops, excess = stats.accuracy_drop(errors), screening.excess(errors)
pd.Series(errors.n, index=errors.groups, name="trajectories").to_frame()

# curves-figure
mean = stats.tabulate((errors.samples - errors.samples[..., :1]).mean(2, keepdims=True), errors, errors.bins, models=["mean"])
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.8))
plots.estimate_lines(panels[0], mean, x="scale", hue="shift", label="accuracy drop")
plots.estimate_lines(panels[1], excess[excess["rule"] != screening.LABELS], x="scale", hue="rule", label="drop minus that under the labels")
panels[0].legend(loc="upper left", fontsize="small")
panels[1].axhline(0, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
figure.tight_layout()

# curves-save
note = f"{plots.extent(errors.n)} trajectories; bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"mean of {len(errors.models)} classifiers, {note}; {source}")
both_curves = {"drop": drops.rename(columns={"shift": "rule"}), "drop minus that under the labels": excess}
plots.save(figure, layout.figures / "labels_curves", pd.concat(both_curves, names=["value"]).reset_index("value"))
last = excess[excess["scale"] == errors.bins[-1]].set_index("rule")
last[["n", "estimate", "low", "high"]].round(3)

# ranking-figure
tau = screening.agreement(errors)
figure, axes = plt.subplots(figsize=(4.2, 3))
plots.estimate_lines(axes, tau[tau["rule"] != screening.LABELS], x="scale", hue="rule", label="tau with the order under the labels")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
left = ", ".join(f"{name}: {count}" for name, count in zip(errors.groups, errors.n, strict=True))
plots.caption(figure, f"{len(errors.models)} classifiers; {note}, paired;\n{left}; {source}")
plots.save(figure, layout.figures / "labels_ranking", tau)

# study
survivors = aligned.merge(pd.read_parquet(layout.artifacts("filtering") / "kept.parquet"), on=tables.TRAJECTORY)
asked = labelset.with_pictures(images, labelset.sample(survivors, study, seed))
via.export(asked, desk / "study" / "user_study.json")
people = labelset.annotated([paths.resolve(file) for file in study_files], asked) if study_files else None
answered = labelset.oracle_answers(asked, encoders.Oracle(oracle, labels=names, device=device)) if people is None else people
who, chance = "people" if study_files else "oracle, asked twice", 1 / len(names)
shares = labelset.study_shares(labelset.joined(answered), asked, survivors, who=who, chance=chance, confidence=confidence)
shares.round(4)

# study-figure
figure, axes = plt.subplots(figsize=(4.5, 1.6))
plots.estimate_dots(axes, shares, y="what", label="share out of class", reference=0)
plots.caption(figure, f"{plots.extent(shares['n'])} pictures; {confidence:.0%} Wilson; the whole benchmark is counted, not estimated")
plots.save(figure, layout.figures / "labels_study", shares)

# paper-filter
table2b = pd.read_csv(paths.PUBLISHED / "cns_table2b.csv").set_index("filter")
ours = quality.set_index(["rule", "part", "measure"])[["n", "estimate", "low", "high"]]
both_rules = {"CLIP": screening.ALONE, "ours": rule}
compared = pd.concat({name: ours.loc[how] for name, how in both_rules.items()}, names=["filter"])
compared["published"] = [table2b.loc[name, measure] for name, _, measure in compared.index]
inside_ours = compared["published"].between(compared["low"], compared["high"])
judged = inside_ours.map({True: "within our interval", False: "differs"}).where(compared["n"] > 0, "nothing to judge")
compared.assign(difference=compared["estimate"] - compared["published"], verdict=judged).round(3)

# paper-stages
stages = labelset.stage_counts(aligned[aligned["shift"].isin(pair)])
table8 = pd.read_csv(paths.PUBLISHED / "cns_table8.csv").pivot(index="scale", columns="stage", values="images").reindex(stages.index)
cases = {"seeds that stay": (0, "ii", "i"), "easy at the last scale": (-1, "iii", "ii"), "in class at the last scale": (-1, "iv", "ii")}
shape = {name: [table[top].iloc[at] / table[below].iloc[at] for table in (stages, table8)] for name, (at, top, below) in cases.items()}
comparison = pd.DataFrame(shape, index=["ours", "published"]).T.assign(difference=lambda t: t["ours"] - t["published"])
comparison.assign(verdict=np.where(comparison["difference"].abs() <= 0.1, "close", "differs")).round(3)

# paper-curves
apart = last["estimate"].abs()
claims = {"closer than CLIP alone": screening.ALONE, "closer than no filter": screening.NONE}
holds = {claim: [apart[rule], apart[other], "holds" if apart[rule] < apart[other] else "does not hold"] for claim, other in claims.items()}
pd.DataFrame(holds, index=[f"distance of {rule}", "distance of the other", "verdict"]).T

# answer
test = quality[quality["part"] == ("the other shifts" if (~both["the pair"]).any() else "the pair")].set_index(["rule", "measure"])
good = {m: "{estimate:.0%} ({low:.0%} to {high:.0%})".format(**test.loc[(rule, m)]) for m in ("tpr", "fpr")}
first = f"With thresholds from {' and '.join(pair)} the rule {rule} finds {good['tpr']} of the out-of-class pictures elsewhere"
closest = apart.drop(screening.LABELS).idxmin()
second = f"and drops {good['fpr']} of the good ones; closest to the accuracy curve under the labels comes {closest} ({source})"
answer.update(Markdown(f"**{first} {second}.**"))

# outputs
metrics = {"kappa": agreement, "user_study": stats.records(shares, "what")}
metrics["auc"] = {part: stats.records(table, "detector") for part, table in areas.groupby("part")}
metrics["rules"] = {f"{how}, {part}": stats.records(own, "measure") for (how, part), own in quality.groupby(["rule", "part"])}
metrics["above_clip_alone"] = {f"{how}, {part}": record for (how, part), record in against.items()}
metrics["drop_above_labels"] = stats.records(last.drop(index=screening.LABELS).reset_index(), "rule")
metrics["tau_with_labels"] = stats.records(tau[(tau["scale"] == errors.bins[-1]) & (tau["rule"] != screening.LABELS)], "rule")
tables.write_metrics(layout.metrics / "labels.json", metrics)
labelset.write(labelled, folder / "labelled.parquet")
