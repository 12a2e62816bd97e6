# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import torch
from torchvision.utils import make_grid

from cnslib import manifest, paths, plots, selfsupervised, training, world, zoo

# views
web = world.garments(paths.GARMENTS, "web")
pair = selfsupervised.views(web, ("selfsupervised", "look"), 12, crops=2)
plots.show_image(make_grid(torch.cat(pair), nrow=12, padding=1))

# train
schedule = training.Schedule(steps, batch_size, learning_rate, average=average, seed=seed)
network = {"architecture": architecture, "arguments": arguments}
checkpoint = paths.CHECKPOINTS / "selfsupervised.pt"
backbone = selfsupervised.train(web, **network, temperature=temperature, schedule=schedule, checkpoint=checkpoint, device=device)
zoo.save(backbone, paths.MODELS / "mini-dino", **network)

# measure
catalog, heldout = (world.garments(paths.GARMENTS, pool) for pool in ("catalog", "heldout"))
bank = world.sample(catalog, ("selfsupervised", "bank"), 3 * quality_images, style="catalog", unshifted=1.0)
query = world.sample(heldout, ("selfsupervised", "query"), quality_images, style="catalog", unshifted=1.0)
right = selfsupervised.knn_correct(backbone, bank, query)

# record
quality = {"dino_knn_accuracy": manifest.share(right)}
modules = [selfsupervised, training, *world.RENDERER]
entry = manifest.record(paths.MODELS, "mini-dino", seed=seed, steps=steps, quality=quality, modules=modules)
knn = quality["dino_knn_accuracy"]
interval = f"{knn['low']:.3f} to {knn['high']:.3f}, n = {knn['n']}"
answer.update(Markdown(f"**Neighbours name the class of {knn['estimate']:.3f} of the garments ({interval}).**"))
