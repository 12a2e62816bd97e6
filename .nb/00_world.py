# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import manifest, paths, plots, tables, world
from cnslib.config import SHIFTS

plots.use_style()
layout = paths.Layout(out)

# pools
pools = {name: world.garments(paths.GARMENTS, name) for name in world.POOLS}
counts = {name: pd.Series(pool.labels).map(dict(enumerate(world.CLASSES))).value_counts() for name, pool in pools.items()}
pd.DataFrame(counts).loc[list(world.CLASSES)]

# shifts
steps = 6
sheet = world.severity_sheet(pools["heldout"], shifts_shown=list(SHIFTS), steps=steps, seed=seed)
pictures = world.to_uint8(sheet.flatten(0, 1)).numpy()
distance = (sheet - sheet[:, :1]).abs().mean((2, 3, 4))

# shifts-figure
severities = [f"{i / (steps - 1):.1f}" for i in range(steps)]
figure, axes = plt.subplots(figsize=(4.2, 9))
plots.contact_sheet(axes, pictures.reshape(len(SHIFTS), steps, 64, 64, 3), rows=list(SHIFTS), columns=severities)
table = pd.DataFrame(distance.numpy(), index=list(SHIFTS), columns=severities).rename_axis("shift").reset_index()
plots.save(figure, layout.figures / "world_shifts", table.melt("shift", var_name="severity", value_name="mean_abs_difference"))

# catalog
parts = [
    world.catalog(pools[pool], split, classes=classes, images=images, seed=seed)
    for pool, split, images in (("catalog", "train", train_images), ("heldout", "heldout", heldout_images))
]
catalog = pd.concat(parts, ignore_index=True)
tables.write(catalog, layout.artifacts("world") / "catalog.parquet", tables.catalog)
catalog.groupby(["split", "class"], sort=False).size().unstack("split")

# catalog-figure
shown = catalog[catalog["seed"] < 8].query("split == 'heldout'")
grid = tables.pictures(shown, "catalog").reshape(len(classes), 8, 64, 64, 3)
figure, axes = plt.subplots(figsize=(5, 6.5))
plots.contact_sheet(axes, grid, rows=classes, columns=[str(i) for i in range(8)])
plots.save(figure, layout.figures / "world_catalog", shown[["class", "seed"]])

# models
entries = manifest.read(paths.MODELS)
quality = {key: value for entry in entries.values() for key, value in entry["quality"].items() if key != "accuracy"}
named = {name.split("/")[-1]: entry["quality"]["accuracy"] for name, entry in entries.items() if "accuracy" in entry["quality"]}
pd.DataFrame({name: {"seed": e["seed"], "steps": e["steps"], "code": e["code"][:8]} for name, e in entries.items()}).T

# bounds
bounds = {"vae_psnr_db": 31.0, "vae_psnr_db_worst_shift": 21.0, "dino_knn_accuracy": 0.75, "clip_shift_accuracy": 0.9}
bounds |= dict.fromkeys(["text_class_accuracy", "text_shift_accuracy", "clip_class_accuracy"], 0.8)
rows = [{"quality": key, "bound": bound, **quality[key]} for key, bound in bounds.items()]
rows += [{"quality": f"classifier {name}", "bound": 0.8, "at most": 0.95, **record} for name, record in named.items()]
judged = pd.DataFrame(rows).fillna({"at most": float("inf")})
holds = judged["estimate"].between(judged["bound"], judged["at most"])
judged["verdict"] = holds.map({True: "met", False: "missed"})
judged.round(3)

# answer
met = (judged["verdict"] == "met").sum()
missed = ", ".join(judged.loc[judged["verdict"] == "missed", "quality"]) or "none"
answer.update(Markdown(f"**{met} of {len(judged)} quality bounds are met; missed: {missed}.**"))

# outputs
tables.write_metrics(layout.metrics / "world.json", quality | {"classifier_accuracy": named})
print(f"{len(catalog)} catalog images, {len(entries)} models, {len(SHIFTS)} shifts")
