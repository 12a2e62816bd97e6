# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd

from cnslib import failure, paths, plots, stats, tables
from cnslib.analyses import Failure

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Failure(resamples, confidence, seed)

# data
predictions = tables.read_answers(sorted(layout.artifacts("evaluation").glob("*.parquet")))
kept = pd.read_parquet(layout.artifacts("filtering") / "kept.parquet")
found = stats.outcomes(predictions, kept)
failures, errors = stats.failure_shares(found, settings=settings), stats.error_shares(found, settings=settings)
kinds = failure.kinds(failure.intervals(found))
kinds.groupby("model")["kind"].value_counts().unstack().fillna(0).astype(int)

# survival-figure
survival = failure.curves(failures)
figure = plots.panels(survival[survival["model"].isin(shown)], plots.survival_lines, columns=5)
note = f"trajectories; bands: {confidence:.0%} bootstrap over (class, seed)"
plots.caption(figure, f"{plots.extent(failures.n)} {note}")
plots.save(figure, layout.figures / "failure_survival", survival)

# median
median = failure.median_scale(failures)
median.pivot(index="model", columns="shift", values="estimate")

# log-rank
tests = failure.log_rank(found)
tests.sort_values("p").head(8).round(4)

# definitions-figure
named = failure.definitions(failures, errors)
table = pd.concat([part[part["shift"] == stats.ALL].assign(definition=name) for name, part in named.items()])
figure = plots.panels(table[table["model"].isin(shown)], plots.failure_bars, by="definition", columns=3)
for axes in figure.axes[::3]:
    axes.set_ylabel("share")  # of what, the panel's name says
plots.caption(figure, f"n = {failures.n[-1]} {note.replace('bands', 'lines')}")
plots.save(figure, layout.figures / "failure_definitions", table)

# recovery
recovered = failure.recovered(found, settings=settings)
recovered[recovered["shift"] == stats.ALL].drop(columns="shift").round(3)

# paper-spread
spread = failure.spread(failures)
spread.pivot(index="model", columns="shift", values="estimate").round(2)

# paper-claims
claims = [("cartoon style", "heavy snow", "section 5.3"), ("cartoon style", "heavy fog", "section 5.3, as a weather shift")]
claims = [claim for claim in claims if set(claim[:2]) <= set(failures.groups)]
rows = [{"claim": f"{a} more abrupt than {b}", "source": source, **failure.more_abrupt(failures, a, b)} for a, b, source in claims]
table = pd.DataFrame(rows, columns=["claim", "source", "n", "estimate", "low", "high"]).rename(columns={"estimate": "ours"})
cases = [table["low"] > 0, table["high"] < 0]
table.assign(published="above 0", verdict=np.select(cases, ["same direction", "opposite direction"], "undecided")).round(3)

# answer
half = median[median["shift"] == stats.ALL].set_index("model")["estimate"]
reached = half[half < float("inf")]
span = f"Half of the trajectories have failed by scale {reached.min():g} to {reached.max():g}, depending on the classifier"
text = span if len(reached) else "No classifier loses half of the trajectories"
other = f"{len(half) - len(reached)} of {len(half)} classifiers still hold more than half of them at scale {found.scales[-1]:g}"
again = recovered[recovered["shift"] == stats.ALL]["estimate"]
sentence = f"**{text}; {other}, and {again.min():.0%} to {again.max():.0%} of the trajectories recover after their first failure.**"
answer.update(Markdown(sentence))

# outputs
final = survival[(survival["shift"] == stats.ALL) & (survival["scale"] == found.scales[-1])]
metrics = {"survival_last_scale": stats.records(final, "model")}
metrics["recovered"] = stats.records(recovered[recovered["shift"] == stats.ALL], "model")
tables.write_metrics(layout.metrics / "failure.json", metrics)
print(f"metrics/failure.json: {', '.join(metrics)}")
