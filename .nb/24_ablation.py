# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import ablation, clustered, conclusions, encoders, health, models, paths, plots, stats, subsets, tables
from cnslib.classifiers import load
from cnslib.config import UNSHIFTED, Generation
from cnslib.generation import evaluations
from cnslib.studies import Ablation

# settings
plots.use_style()
layout = paths.Layout(out)
sizes = {"shifts": shifts, "seeds": seeds, "counts": counts, "samplers": samplers, "reference": reference}
settings = Ablation(resamples=resamples, confidence=confidence, seed=seed, rce_reference=rce_reference, **sizes)

# classes
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
every = stats.outcomes(predictions)
chosen = [count for count in counts if count <= len(classes)]
found = subsets.measures(every, chosen, reference=rce_reference)
spread = subsets.spread(found, confidence=confidence)
spread["text"] = [f"{row.estimate:.2f} ({row.low:.2f} to {row.high:.2f})" for row in spread.itertuples()]
print(f"{len(every.trajectories)} trajectories, {len(every.models)} classifiers, {found['subset'].nunique()} subsets")
spread.pivot(index="measure", columns="classes", values="text").loc[list(subsets.MEASURES)]

# classes-figure
figure = subsets.range_figure(spread)
plots.caption(figure, f"{plots.extent(spread['n'])} subsets; bars: middle {confidence:.0%} of the subsets")
plots.save(figure, layout.figures / "ablation_classes", spread.drop(columns="text"))

# steady
half = max(1, len(classes) // 2)
steady = subsets.steadier(every, half, settings=settings)
pd.DataFrame({f"spread of accuracy minus spread of drop, {half} classes": steady}).T.round(3)

# samplers
pipe, tokens = models.load_pipeline(paths.resolve(pipeline), device), layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
steppers = ablation.steppers(pipe, samplers, settings=Generation(**generation))
grid = {"shifts": len(shifts), "images": 1, "scales": len(scales)}
cost = pd.Series({name: evaluations(stepper.settings, **grid)["shared"] for name, stepper in steppers.items()}, name="evaluations")
print(f"{cost.sum() * len(classes) * seeds} evaluations in all")
cost.to_frame().assign(relative=(cost / cost[reference]).round(2))

# jury
jury = {"labels": encoders.read_labels(labels), "device": device, "preprocessing": evaluation["preprocessing"]}
asked = [load(name, source, **jury) for name, source in evaluation["classifiers"].items()]
judge = health.Judge(encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device))
origin = models.origin(paths.resolve(pipeline), tokens, classes)
bench = ablation.Bench(steppers, reference, origin, judge, asked, layout.artifacts("sliders"), layout.artifacts("ablation"))

# compare
answers, looks = ablation.compare(bench, shifts, classes, scales=scales, seeds=seeds)
shares = conclusions.by_sampler(answers, settings=settings)
print(f"{len(looks)} pictures seen, {len(answers)} answers of {len(asked)} classifiers")

# strips
film = ablation.films(bench, shifts[0], classes[-1], 1, scales)
figure, axes = plt.subplots(figsize=(5, 4.4))
plots.contact_sheet(axes, np.stack(list(film.values())), rows=list(film), columns=[f"{scale:g}" for scale in scales])
plots.caption(figure, f"{shifts[0]}: {classes[-1]}, seed 1; columns: slider scale")
plots.save(figure, layout.figures / "ablation_strips", looks[(looks["class"] == classes[-1]) & (looks["seed"] == 1)])

# likeness
likeness = conclusions.likeness(looks, reference, settings=settings)
likeness["text"] = [f"{row.estimate:.2f} ({row.low:.2f} to {row.high:.2f})" for row in likeness.itertuples()]
print(f"{plots.extent(likeness['n'])} pictures per cell")
likeness[likeness["scale"] == max(scales)].pivot(index="sampler", columns="measure", values="text")

# curves
curve, gap = conclusions.curves(shares), conclusions.differences(shares, reference)
figure = plots.panels(curve, plots.estimate_lines, columns=3, x="scale", hue="sampler", label="accuracy")
note = f"trajectories; bands: {confidence:.0%} bootstrap over (class, seed), mean over {len(asked)} classifiers"
plots.caption(figure, f"{plots.extent(curve['n'])} {note}")
plots.save(figure, layout.figures / "ablation_samplers", curve)

# gap
zero = curve[curve["sampler"] == reference].assign(estimate=0.0, low=0.0, high=0.0)
both = pd.concat([gap, zero])
figure = plots.panels(both, plots.estimate_lines, columns=3, x="scale", hue="sampler", label=f"accuracy minus {reference}")
plots.caption(figure, f"{plots.extent(gap['n'])} {note}")
plots.save(figure, layout.figures / "ablation_difference", gap)

# orders
orders = conclusions.orders(shares, reference)
own = stats.outcomes(predictions[predictions["shift"].isin([*shifts, UNSHIFTED])])
orders["other seeds, same sampler"] = conclusions.other_seeds(own, seeds, confidence=confidence)
drops = conclusions.drop_differences(shares, reference)
display(pd.DataFrame(orders).T.rename_axis("Kendall's tau").round(3))
pd.DataFrame(drops).T.rename_axis("drop minus reference's").round(3)

# fast
fast = next((name for name, one in samplers.items() if one["scheduler"].startswith("UniPC")), reference)
sources = {"benchmark": own, fast: stats.outcomes(answers[answers["sampler"] == fast].drop(columns="sampler"))}
parts = [subsets.curves(part, chosen, confidence=confidence).assign(panel=f"{name}: accuracy") for name, part in sources.items()]
parts += [subsets.failures(part, chosen, confidence=confidence).assign(panel=f"{name}: failures") for name, part in sources.items()]
figure = plots.panels(both := pd.concat(parts), plots.estimate_lines, by="panel", columns=2, x="scale", hue="classes", label="share")
plots.caption(figure, f"{plots.extent(both['n'])} subsets; bands: middle {confidence:.0%} of them; failures: share of all failure points")
plots.save(figure, layout.figures / "ablation_subsets", both)

# paper
few = next((name for name, one in samplers.items() if one["steps"] == generation["steps"]), fast)
ours = {"steady": steady, "fast": drops[fast], "few": drops[few], "order": orders[fast]}
clustered.judged(ours, pd.read_csv(paths.PUBLISHED / "ablation.csv")).round(3)

# answer-parts
middle = chosen[len(chosen) // 2]
five = spread[spread["classes"] == middle].set_index("measure")["text"]
alone = orders["other seeds, same sampler"]["estimate"]
said = "{estimate:+.3f} ({low:+.3f} to {high:+.3f})".format(**drops[few])
steps = f"{samplers[few]['steps']} steps instead of {samplers[reference]['steps']}"

# answer
text = f"On subsets of {middle} of the {len(classes)} classes the drop is {five['accuracy drop']}"
text += f" and the accuracy at scale 0 {five['accuracy at scale 0']} (middle {confidence:.0%} of the subsets)"
text += f"; drawn in {steps} the drop differs by {said}, and the classifiers' order agrees with"
text += f" tau {orders[few]['estimate']:.2f}, where other garments by the same sampler give {alone:.2f}."
answer.update(Markdown(f"**{text}**"))

# outputs
last = likeness[likeness["scale"] == max(scales)]
metrics = {"tau": orders, "drop_minus_reference": drops, "steadier_drop": steady}
metrics["pictures"] = {name: stats.records(part, "measure") for name, part in last.groupby("sampler")}
metrics["classes"] = {f"{count}": stats.records(part, "measure") for count, part in spread.groupby("classes")}
tables.write_metrics(layout.metrics / "ablation.json", metrics)
print(f"metrics/ablation.json: {', '.join(metrics)}")
