# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import paths, plots, roster, supervised, world, zoo
from cnslib.recipes import Augmentation

plots.use_style()
settings = Augmentation(
    classifiers, policy, erasing, mixup, cutmix, mixed, smoothing, batch_size, learning_rate, weight_decay, average, quality_images, seed
)

# look
scenes = world.sample(world.garments(paths.GARMENTS, "catalog"), ("augmentation", "look"), 8, style="catalog", unshifted=1.0)
supervised.reseed("augmentation", "look", seed)
changed, _ = supervised.Strong(policy, erasing, mixup, cutmix, 1.0, smoothing)(scenes.image, scenes.label)
both = [world.to_uint8(picture).numpy() for picture in (scenes.image, (changed * zoo.STD[0] + zoo.MEAN[0]).clamp(0, 1))]
figure, axes = plt.subplots(figsize=(8, 2.2))
plots.contact_sheet(axes, both, rows=["catalog", "strong"], columns=[""] * 8)

# train
run = roster.Run(device=device)
entries = {member.name: roster.build(member, run, quality_images=quality_images) for member in roster.augmented(settings)}
rows = {name: {"weights": entry["parameters"], "steps": entry["steps"], **entry["quality"]["accuracy"]} for name, entry in entries.items()}
pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier").round(3)
