# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import axes, denoiser, duels, models, paths, plots, stats, tables
from cnslib.analyses import Denoiser

# settings
plots.use_style()
layout = paths.Layout(out)
sample = {"shifts": shifts, "seeds": seeds, "scales": scales, "keep": keep, "trials": trials}
settings = Denoiser(resamples=resamples, confidence=confidence, seed=seed, **sample)
first, second = (duels.model(loss) for loss in ("l1", "l2"))  # the diffusion classifier by its two losses

# sample
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
chosen = duels.choose(kept, classes, settings=settings)
wanted = duels.keys(chosen, settings=settings)
images = duels.pictures(layout.artifacts("generation"), wanted)
judge = denoiser.text_judge(paths.resolve(pipeline), classes, device=device)
print(f"{len(chosen)} trajectories, {len(wanted)} pictures")
wanted.groupby(["shift", "scale"]).size().rename("pictures").to_frame().T

# cost
folder = layout.artifacts("denoiser") / "errors"
plan = denoiser.plan(images, folder)
duels.announce(judge, plan, settings=settings)
duels.costs(len(images), classes=len(classes), settings=settings)

# judge
errors = duels.judge_all(judge, plan, folder=folder, settings=settings)
size = int(np.prod(models.latent_shape(judge.parts)))
answers = pd.concat([duels.answers(errors, classes, loss, size=size, settings=settings) for loss in ("l1", "l2")])
tables.write(answers, layout.artifacts("denoiser") / "predictions.parquet", tables.predictions)
saved = len(wanted) * len(classes) * trials[-1] / len(errors)
print(f"{len(errors):,} evaluations; without stages {saved:.1f} times as many")

# margins
sure = duels.margins(answers, chosen, settings=settings)
relative = answers.groupby("model")["margin"].apply(lambda margin: margin.abs().median())
total = errors.groupby(tables.KEY)[["l1", "l2"]].mean().mean() * size
print("median margin as a share of the error:", {f"{m}": f"{relative[duels.model(m)] / total[m]:.2%}" for m in ("l1", "l2")})
answers.sort_values("margin")[["model", *tables.KEY, "top1", "margin"]].iloc[[0, len(answers) // 2, -1]].round(2)

# margins-figure
figure = plots.panels(sure, plots.estimate_lines, x="scale", hue="model", label="margin of the true class")
note = f"trajectories per shift; bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(sure['n'])} {note}; a margin is a sum over {size:,} values of a latent")
plots.save(figure, layout.figures / "denoiser_margins", sure)

# timesteps
tried = duels.tried_by_all(errors, classes=classes)
single = duels.hits_by(tried, ["loss", "timestep"], settings=settings)
signal = judge.parts.scheduler.alphas_cumprod.numpy()
spaces = duels.spaces(tried, signal, settings=settings)
spaces.round(3)

# timesteps-figure
figure, panel = plt.subplots(figsize=(4, 2.6))
plots.estimate_lines(panel, single, x="timestep", hue="loss", label="accuracy of one timestep")
panel.axhline(1 / len(classes), color="0.5", linewidth=0.8, linestyle=":", zorder=0)
panel.legend()
plots.caption(figure, f"{plots.extent(single['n'])} pictures; bands: {confidence:.0%} bootstrap over (class, seed); dotted: guessing")
plots.save(figure, layout.figures / "denoiser_timesteps", single)

# rivals
predictions = pd.concat([duels.rivals(layout.artifacts("evaluation"), wanted), answers[["model", *tables.KEY, "top1"]]])
found = stats.outcomes(predictions, chosen)
shares = stats.error_shares(found, settings=settings)
accuracy, drops = stats.accuracy(shares), stats.accuracy_drop(shares)
whole = accuracy[accuracy["shift"] == stats.ALL].pivot(index="model", columns="scale", values="estimate")
whole.sort_values(scales[-1], ascending=False).round(2).T

# accuracy-figure
few = accuracy[accuracy["model"].isin([*shown, first, second])]
figure = plots.panels(few, plots.accuracy_lines, chance=1 / len(classes))
plots.caption(figure, f"{plots.extent(shares.n)} {note}; dotted: guessing")
plots.save(figure, layout.figures / "denoiser_accuracy", accuracy)

# lead
ahead = duels.lead(shares, reference=first)
pooled = ahead[ahead["shift"] == stats.ALL]
figure, panel = plt.subplots(figsize=(4.5, 0.8 + 0.2 * len(pooled)))
plots.estimate_dots(panel, pooled, y="model", label=f"{first} loses more than the model", reference=0)
plots.caption(figure, f"n = {shares.n[-1]} trajectories; lines: {confidence:.0%} paired bootstrap over (class, seed)")
plots.save(figure, layout.figures / "denoiser_lead", ahead)

# paper-table
printed = pd.read_csv(paths.PUBLISHED / "denoiser.csv")
average = printed[printed["scale"].isna()]
comparison = duels.published(shares, average, reference=first)
comparison.round(3)

# paper-growth
growth = duels.widening(shares, reference=first).query("shift == @stats.ALL and model in @average.counterpart")
cases = [growth["low"] > 0, growth["high"] < 0]
grown = growth.rename(columns={"estimate": "growth of the gap"}).assign(published="above 0 (Fig. 14)")
grown.assign(verdict=np.select(cases, ["same direction", "opposite direction"], "undecided")).round(3)

# supplement
heavy = printed[printed["scale"].notna()].rename(columns={"drop": "published at scale 2"})
last = drops[drops["scale"] == scales[-1]].rename(columns={"model": "counterpart", "estimate": "ours at the last scale"})
beside = heavy.drop(columns=["scale", "source"]).merge(last.drop(columns="scale"), on=["counterpart", "shift"])
beside["difference"] = beside["ours at the last scale"] - beside["published at scale 2"]
inside = beside["published at scale 2"].between(beside["low"], beside["high"])
beside.assign(verdict=np.where(inside, "agrees", "differs")).round(3)

# answer
start, end = (whole.loc[first, scale] for scale in (scales[0], scales[-1]))
rivals = pooled[pooled["model"] != second]
worse, better = int((rivals["low"] > 0).sum()), int((rivals["high"] < 0).sum())
text = f"Its accuracy falls from {start:.2f} to {end:.2f} at scale {scales[-1]} ({shares.n[-1]} trajectories)"
told = f"it loses more than {worse} of {len(rivals)} classifiers and less than {better}, and the other comparisons stay open"
verdict = "No sign of it" if better <= worse else "More than some of them"
answer.update(Markdown(f"**{verdict}. {text}; {told}.**"))

# outputs
everywhere = axes.average_drop(shares).query("shift == @stats.ALL")
ends = {scale: accuracy.query("shift == @stats.ALL and scale == @scale") for scale in (scales[0], scales[-1])}
metrics = {f"accuracy_scale_{scale:g}": stats.records(part, "model") for scale, part in ends.items()}
metrics |= {"average_drop": stats.records(everywhere, "model"), "lead": stats.records(pooled, "model")}
metrics["space"] = stats.records(spaces.assign(key=spaces["loss"] + " of " + spaces["space"]), "key")
tables.write_metrics(layout.metrics / "denoiser.json", metrics)
print(f"metrics/denoiser.json: {', '.join(metrics)}")
