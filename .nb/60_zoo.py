# imports
import json

from IPython.display import Markdown

from cnslib import manifest, paths, training, units, world, zoo

# train
catalog = world.garments(paths.GARMENTS, "catalog")
schedule = training.Schedule(0, batch_size, learning_rate, average=average, seed=seed)  # each brings its own steps
trained = {
    name: zoo.build(catalog, name, options, schedule=schedule, checkpoints=paths.CHECKPOINTS, models=paths.MODELS, device=device)
    for name, options in classifiers.items()
}
units.write_bytes(paths.MODELS / "labels.json", json.dumps(list(world.CLASSES)).encode())

# measure
heldout = world.garments(paths.GARMENTS, "heldout")
plain = world.sample(heldout, ("zoo", "heldout"), quality_images, style="catalog", unshifted=1.0)
accuracy = {name: manifest.share(zoo.class_correct(model, plain)) for name, model in trained.items()}

# record
for name, options in classifiers.items():
    about = {"steps": options["steps"], "quality": {"accuracy": accuracy[name]}}
    manifest.record(paths.MODELS, f"classifiers/{name}", seed=seed, modules=[zoo, training, *world.RENDERER], **about)
Markdown(
    "| classifier | held-out accuracy | 95 % interval | n |\n|---|---|---|---|\n"
    + "\n".join(f"| {name} | {q['estimate']:.3f} | {q['low']:.3f} to {q['high']:.3f} | {q['n']} |" for name, q in accuracy.items())
)
