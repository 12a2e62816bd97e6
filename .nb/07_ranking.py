# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import counterparts, paths, plots, ranking, stats, tables
from cnslib.analyses import Ranking

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Ranking(resamples, confidence, seed)

# data
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
errors = stats.error_shares(stats.outcomes(predictions, kept), settings=settings)
first, last = errors.bins[0], errors.bins[-1]
print(f"{len(errors.models)} classifiers, {errors.n[-1]} trajectories, scales {errors.bins}")

# ranks-figure
ranks = ranking.ranks(errors)
figure = plots.panels(ranks[ranks["model"].isin(shown)], plots.rank_lines, columns=5)
note = f"trajectories; bands: {confidence:.0%} bootstrap over (class, seed), paired"
plots.caption(figure, f"{plots.extent(errors.n)} {note}")
plots.save(figure, layout.figures / "ranking_ranks", ranks)

# pairs
pairs, rule = ranking.pairs(errors), ranking.overlap(errors)
told = pairs.groupby("scale").agg(pairs=("p", "size"), paired=("p", lambda p: (p < 1 - confidence).sum()))
told["paired, Holm"] = (pairs["p_holm"] < 1 - confidence).groupby(pairs["scale"]).sum()
told["one sigma (paper)"] = (~rule["tied"]).groupby(rule["scale"]).sum()
told

# flips-figure
flips = ranking.flips(errors)
ends = flips[(flips["scale"] == first) & (flips["other_scale"] == last)]
figure, axes = plt.subplots(figsize=(1.6 + 0.24 * len(errors.models), 1 + 0.22 * len(errors.models)))
grid = ends.pivot(index="first", columns="second", values="probability")
sns.heatmap(grid, ax=axes, vmin=0, vmax=1, cmap="vlag", cbar_kws={"label": "probability of a flip"})
axes.set(xlabel="", ylabel="")
plots.caption(figure, f"n = {errors.n[-1]} trajectories; order at scale {first:g} against scale {last:g}, all shifts")
plots.save(figure, layout.figures / "ranking_flips", ends)

# agreement-figure
agreement = ranking.agreement(errors)
named = agreement.assign(order="order of all classifiers")
figure = plots.panels(named, plots.estimate_lines, columns=5, x="scale", hue="order", label="tau with scale 0")
plots.caption(figure, f"{len(errors.models)} classifiers; {plots.extent(errors.n)} {note}")
plots.save(figure, layout.figures / "ranking_agreement", agreement)

# paper-table
published = pd.read_csv(paths.PUBLISHED / "accuracy.csv").pivot(index="model", columns="scale", values="accuracy")
_, beside = counterparts.alike(pd.DataFrame(index=errors.models), published)
tau = ranking.agreement(counterparts.same(errors, published)).query("shift == @stats.ALL").set_index("scale")
comparison = tau[["estimate", "low", "high"]].rename(columns={"estimate": "ours"})
comparison = comparison.assign(published=beside.corr("kendall")[first]).loc[first + 0.1 :]
comparison["difference"] = comparison["ours"] - comparison["published"]
inside = comparison["published"].between(comparison["low"], comparison["high"])
comparison.assign(verdict=inside.map({True: "agrees", False: "differs"})).round(3)

# answer
end, safe = agreement.query("shift == @stats.ALL and scale == @last").iloc[0], ends["probability"]
certain = f"{(safe > 0.95).sum()} of {len(ends)} pairs change places in over 95% of the resamples, {(safe < 0.05).sum()} keep their order"
value = f"{end['estimate']:.2f} ({end['low']:.2f} to {end['high']:.2f})"
agree = f"Kendall's tau of the order at scale {last:g} with that at scale {first:g} is {value}"
answer.update(Markdown(f"**{agree}; {certain} as surely, and the other {((safe >= 0.05) & (safe <= 0.95)).sum()} stay open.**"))

# outputs
tau = {f"tau_scale_{scale:g}": record for scale, record in stats.records(agreement[agreement["shift"] == stats.ALL], "scale").items()}
tables.write_metrics(layout.metrics / "ranking.json", tau)
print(f"metrics/ranking.json: {', '.join(tau)}")
