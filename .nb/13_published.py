# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from cnslib import derived, ledger, paths, plots, published, rounding, siblings, tables
from cnslib.analyses import Published

plots.use_style()
layout = paths.Layout(out)
settings = Published(confidence, starts, images, seed)

# averages
check = derived.consistency("cns_table5").sort_values("consistent", ascending=False, kind="stable")
rows = derived.recomputed().loc[check.index]
wrong = check[~check["consistent"]]
print(derived.averaging("cns_table5").round(4).to_string())
wrong.round(3)

# averages-figure
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3))
odd = rows.index.isin(wrong.index)
sns.scatterplot(rows, x="drop_recomputed", y="drop", hue=odd, legend=False, ax=left)
left.plot([0.01, 0.065], [0.01, 0.065], color="0.6", linewidth=0.8, linestyle=":")
sns.scatterplot(rows, x="drop_recomputed", y="rce", hue=odd, legend=False, ax=right)
left.set(xlabel="average drop, recomputed", ylabel="average drop, printed")
right.set(xlabel="average drop, recomputed", ylabel="rCE (Table 4)")

# averages-save
plots.caption(figure, f"n = {len(rows)} models of Table 5; the other colour: a row that contradicts itself; no interval is published")
plots.save(figure, layout.figures / "published_averages", rows.reset_index())
print(f"Kendall's tau of the orders by average drop and by rCE: {derived.order_agreement():.2f}")
derived.implied_reference().round(3)

# partial
partial = rounding.correlations(starts=starts, confidence=confidence, seed=seed)
allowed = partial.drop(columns=["low", "high"]).rename(columns={"least": "low", "most": "high"})  # by any rounding
said = float(published.facts("cns_text")["partial_correlation"])
print(f"p of {said} with one value per model: {rounding.p_value(said, 5):.2f}; points it needs: {rounding.models_needed(said, 0.05)}")
partial.round(3)

# partial-figure
figure, axes = plt.subplots(figsize=(5, 2.4))
axes.hlines(partial["accuracy"], partial["least"], partial["most"], color="0.6", linewidth=0.8)
axes.hlines(partial["accuracy"], partial["low"], partial["high"], linewidth=3, alpha=0.6)
axes.plot(partial["estimate"], partial["accuracy"], "o", color="0.15", markersize=4)
axes.axvline(said, color="0.4", linestyle=":")
axes.set(xlabel="partial correlation of size (dotted: the paper's)", xlim=(-1.05, 1.05))
plots.caption(figure, f"n = 5 models; bars: {confidence:.0%} of {starts:,} roundings; lines: extremes of all roundings")
plots.save(figure, layout.figures / "published_partial", partial)

# intervals
shares = derived.intervals(confidence=confidence)
figure, axes = plt.subplots(figsize=(5, 2.8))
plots.estimate_dots(axes, shares, y="what", label="share", reference=0)
plots.caption(figure, f"{plots.extent(shares['n'])} images; bars: {confidence:.0%} Wilson intervals")
plots.save(figure, layout.figures / "published_intervals", shares)
shares.round(4)

# siblings
scores = siblings.scores()
long = scores[["printed", "row_mean", "as_defined"]].reset_index().melt("model", var_name="score", value_name="value")
figure, axes = plt.subplots(figsize=(5, 2.6))
sns.stripplot(long, x="value", y="model", hue="score", jitter=False, dodge=True, ax=axes)
axes.set(xlabel="robustness score", ylabel="")
plots.caption(figure, f"n = {len(published.SCENARIOS)} scenarios per model and row; no interval is published")
plots.save(figure, layout.figures / "published_scores", long)
siblings.implied_means().round(4)

# latents
size = int(published.facts("control_shift_text")["latent_size"])
same = {"size": size, "images": images, "seed": seed}
made = {
    (way, theta): siblings.extended(theta, printed=way == "printed", **same)
    for way in ("printed", "exchanged")
    for theta in (0.0, 0.785, 1.5708)
}
pd.concat({key: part.agg(["mean", "std"]).stack() for key, part in made.items()}, axis=1).round(2)

# ledger-figure
lines = ledger.build(settings)
counts = ledger.overview(lines)
figure, axes = plt.subplots(figsize=(5, 2))
counts.plot.barh(stacked=True, ax=axes, color=sns.color_palette("colorblind")[2:3] + sns.color_palette("colorblind")[:2] + ["0.3"])
axes.set(xlabel="lines of the ledger", ylabel="")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plots.caption(figure, f"n = {len(lines)} lines")
plots.save(figure, layout.figures / "published_ledger", lines)

# ledger
with pd.option_context("display.max_colwidth", None, "display.max_rows", None):
    display(lines.drop(columns=["id", "source"]))

# answer
differ, fall = lines[lines["verdict"] != "agrees"], lines[lines["verdict"] == ledger.VERDICTS[3]]
first = partial.iloc[0]
text = f"{len(differ)} of {len(lines)} comparisons differ, and {len(fall)} claims fall with them: {'; '.join(fall['subject'])}. "
spread = f"{first['low']:+.2f} to {first['high']:+.2f} by rounding"
text += f"The partial correlation printed as {said} comes out at {first['estimate']:+.2f} ({spread})"
text += f"; {len(check) - len(wrong)} of {len(check)} rows of Table 5 agree with themselves."
answer.update(Markdown(f"**{text}**"))

# outputs
numbers = ["n", "estimate", "low", "high"]
metrics = {"partial_correlation": allowed.set_index("accuracy")[numbers].to_dict("index")}
metrics["shares"] = {row["what"]: dict(row[numbers]) for _, row in shares.iterrows()}
nothing = {"low": None, "high": None}
metrics["ledger"] = {name: {"n": len(lines), "estimate": (lines["verdict"] == name).sum(), **nothing} for name in ledger.VERDICTS}
metrics["order_by_drop_and_rce"] = {"n": len(rows), "estimate": derived.order_agreement(), **nothing}
tables.write_metrics(layout.metrics / "published.json", metrics)
print(f"metrics/published.json: {', '.join(metrics)}")
