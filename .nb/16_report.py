# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from torch import nn
from torchvision.transforms.v2 import GaussianBlur

from cnslib import benchmarks, encoders, paths, plots, report, stats, tables
from cnslib.analyses import Accuracy

# settings
plots.use_style()
layout = paths.Layout(out)
settings = Accuracy(reference, resamples, confidence, seed)

# benchmark
others = sorted(layout.artifacts("evaluation").glob("*.parquet"))
grid = {"scales": scales, "seeds": seeds, "labels": encoders.read_labels(labels)}
on = benchmarks.of_images(layout, shifts, classes, **grid, batch_size=batch_size, settings=settings, others=others)
print(f"{sum(map(len, on.shards.values())):,} pictures, {len(on.kept)} kept trajectories, {len(on.models)} others: {', '.join(on.models)}")

# module
network, transform = encoders.timm_model("report.model", model, device)
mine = nn.Sequential(GaussianBlur(2 * round(3 * blur) + 1, sigma=blur), network)
found = report.report(mine, name=name, transform=transform, on=on, device=device)
found

# figure
plots.save(found.figure(), layout.figures / "report_overview", found.summary)
folder = found.save(layout.artifacts("report"))
print(f"the same as text, tables and answers: {', '.join(sorted(path.name for path in folder.iterdir()))}")

# paired
gain = found.tables["pairs"].query("second == @plain").set_index("scale")
gain[["n", "estimate", "low", "high", "p_holm"]].round(3)

# shifts
answers = pd.concat([on.answers, found.predictions[on.answers.columns]], ignore_index=True)
pair = stats.outcomes(answers[answers["model"].isin([name, plain])], on.kept)
errors = stats.error_shares(pair, settings=settings)
last = pair.scales[-1]
lost = stats.drop_against(errors, reference=plain).query("model == @name and scale == @last and shift != @stats.ALL")

# shifts-figure
figure, axes = plt.subplots(figsize=(5, 0.8 + 0.24 * len(lost)))
plots.estimate_dots(axes, lost, y="shift", label=f"accuracy drop at scale {last:g}, with minus without the blur", reference=0.0)
plots.caption(figure, f"{plots.extent(lost['n'])} trajectories per shift; {confidence:.0%} bootstrap over (class, seed)")
plots.save(figure, layout.figures / "report_shifts", lost)
spared, hurt = lost[lost["high"] < 0]["shift"], lost[lost["low"] > 0]["shift"]
print(f"protects against: {', '.join(spared) or 'none'}; makes worse: {', '.join(hurt) or 'none'}")

# paper
table4 = pd.read_csv(paths.PUBLISHED / "corruption_error.csv").set_index("model").drop(index="alexnet")[["ce", "rce"]]
ours = found.summary.set_index("quantity").loc[["CE", "rCE"], ["n", "estimate", "low", "high"]].rename(columns={"estimate": "ours"})
median, least, most = (table4.agg(how).to_numpy() for how in ("median", "min", "max"))
comparison = ours.assign(published=median, least=least, most=most, difference=ours["ours"] - median)
inside = ours["ours"].between(least, most)
comparison.assign(verdict=np.where(inside, "inside the paper's range", "outside of it")).round(3)

# answer
end = gain.loc[last]
word = "more accurate than" if end["low"] > 0 else "less accurate than" if end["high"] < 0 else "not to be told from"
place = found.summary.set_index("quantity").loc[f"accuracy at scale {last:g}"]
difference = f"{end['estimate']:+.3f}, {end['low']:+.3f} to {end['high']:+.3f}"
sentence = f"At scale {last:g} {name} is {word} {plain} ({difference}) and number {place['place']:.0f} of {place['of']:.0f} there"
answer.update(Markdown(f"**{sentence}; against {len(spared)} of {len(lost)} shifts the blur protects, {len(hurt)} it makes worse.**"))

# metrics
columns = ["n", "estimate", "low", "high"]
measured = {f"gain_scale_{scale:g}": row[columns].to_dict() for scale, row in gain.iterrows()}
measured |= {key: found.summary.set_index("quantity").loc[key, columns].to_dict() for key in ("CE", "rCE")}
tables.write_metrics(layout.metrics / "report.json", measured)
print(f"metrics/report.json: {', '.join(measured)}")
