# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
from matplotlib import pyplot as plt

from cnslib import manifest, paths, plots, roster, supervised, world, zoo
from cnslib.recipes import Augmentation

# settings
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
entries["vit"] = manifest.read(paths.MODELS)["classifiers/vit"]
rows = {name: {"weights": entry["parameters"], "steps": entry["steps"], **entry["quality"]["accuracy"]} for name, entry in entries.items()}
table = pd.DataFrame(rows).T.astype({"weights": int, "steps": int, "n": int}).rename_axis("classifier")
table.round(3)

# answer
deit, vit = table.loc["deit"], table.loc["vit"]
said = [f"{row['estimate']:.0%} ({row['low']:.0%} to {row['high']:.0%})" for row in (deit, vit)]
apart = deit["low"] > vit["high"] or deit["high"] < vit["low"]
word = "the same within the intervals" if not apart else "more" if deit["low"] > vit["high"] else "less"
answer.update(Markdown(f"**With DeiT's recipe the network names {said[0]} of held-out garments, with the plain one {said[1]}: {word}.**"))
