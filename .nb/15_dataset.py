# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from torch.utils.data import DataLoader

from cnslib import croissant, datasheet, encoders, paths, plots, published, stats, tables
from cnslib.config import Filtering, Generation, Sliders
from cnslib.dataset import Benchmark
from cnslib.studies import Dataset

# settings
plots.use_style()
layout = paths.Layout(out)
images, kept = layout.artifacts("generation"), layout.artifacts("filtering") / "kept.parquet"
entries = (name, description, version, url, license, creator, date_published, cite_as, keywords, parts)
about = Dataset(resamples, confidence, seed, *entries)
settings = datasheet.Settings(pipeline, Sliders(**sliders), Generation(**generation), Filtering(**filtering))

# load
whole = Benchmark(images, labels=encoders.read_labels(labels), kept=tables.load(kept).to_pandas())
pictures, targets, origin = next(iter(DataLoader(whole, batch_size=4)))
print(f"{len(whole):,} pictures; a batch of {tuple(pictures.shape)}, values {pictures.min():.2f} to {pictures.max():.2f}")
pd.DataFrame({"class": [whole.rows["class"][i] for i in range(4)], "index": targets, **origin})

# facts
facts = datasheet.gather(images, kept.with_name("scores.parquet"), kept, paths.MODELS, settings)
grid = facts.kept.groupby(["class", "shift"]).size().unstack("shift")
drawn = facts.scores.drop_duplicates(tables.TRAJECTORY).groupby(["class", "shift"]).size().unstack("shift")
grid = grid.reindex(index=drawn.index, columns=drawn.columns).fillna(0).astype(int)
print(f"{grid.sum().sum():,} of {drawn.sum().sum():,} trajectories kept; {(grid == 0).sum().sum()} of {grid.size} fields are empty")

# figure
figure, axes = plt.subplots(figsize=(1.5 + 0.42 * grid.shape[1], 1.2 + 0.26 * grid.shape[0]))
sns.heatmap(grid, ax=axes, annot=grid.size <= 400, fmt="d", cmap="crest", vmin=0, cbar_kws={"label": "kept trajectories"})
axes.set(xlabel="", ylabel="")
plots.caption(figure, f"n = {grid.sum().sum()} trajectories kept of {drawn.sum().sum()}, {plots.extent(drawn.stack())} drawn per field")
plots.save(figure, layout.figures / "dataset_kept", grid.stack().rename("kept").reset_index())

# licences
with pd.option_context("display.max_colwidth", None):
    display(datasheet.licences(facts, about).set_index("part"))

# files
folder = layout.artifacts("dataset")
metadata = croissant.write(folder / "croissant.json", images, kept, about=about)
text = datasheet.write(folder / "datasheet.md", facts, about=about)
print(f"croissant.json: {len(metadata['distribution'])} files, {len(metadata['recordSet'])} sets of records")
Markdown(f"\n{text}".split("## How it was made")[0].replace("\n#", "\n###"))

# paper
said, rows = published.facts("cns_text"), facts.rows
scales = rows["scale"].nunique()
share = [len(facts.kept) / drawn.sum().sum(), float(said["images_total"]) / float(said["images_generated"])]
sizes = {"images kept": len(facts.kept) * scales, "classes": rows["class"].nunique(), "shifts": grid.shape[1], "scales": scales}
ours = pd.Series(sizes | {"seeds": rows["seed"].nunique(), "share kept": share[0]})
theirs = [float(said[key]) for key in ("images_total", "classes", "shifts", "scales", "seeds")] + share[1:]
comparison = pd.DataFrame({"ours": ours, "published": theirs})

# verdict
comparison["difference"] = comparison["ours"] - comparison["published"]
words = (comparison["difference"].abs() <= 0.1 * comparison["published"]).map({True: "alike", False: "another size"})
print(f"licence: ours {', '.join(license)}; the paper's text {said['licence']}, its files {published.facts('released_code')['licence']}")
comparison.assign(verdict=words).round(3)

# answer
outside = tables.select(facts.scores, facts.kept, tables.TRAJECTORY, "scores of kept trajectories")
wrong = stats.clustered_share(outside["oracle_ooc"].to_numpy(), outside.groupby(["class", "seed"]).ngroup(), settings=about)
text = f"{len(whole):,} pictures of {rows['class'].nunique()} classes under {grid.shape[1]} shifts, free to use ({', '.join(license)})"
caution = f"{wrong['estimate']:.0%} ({wrong['low']:.0%} to {wrong['high']:.0%}) of them no longer show what their label says"
answer.update(Markdown(f"**{text}; by the oracle's verdict {caution}.**"))

# outputs
zero = facts.scores[facts.scores["scale"] == 0]
held = pd.MultiIndex.from_frame(zero[tables.TRAJECTORY]).isin(pd.MultiIndex.from_frame(facts.kept[tables.TRAJECTORY]))
share = stats.clustered_share(held, zero.groupby(["class", "seed"]).ngroup(), settings=about)
tables.write_metrics(layout.metrics / "dataset.json", {"kept_trajectories": share, "out_of_class_among_kept": wrong})
print("metrics/dataset.json: kept_trajectories, out_of_class_among_kept")
