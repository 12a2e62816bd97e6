# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import json

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
best = max(accuracy, key=lambda name: accuracy[name]["estimate"])
span = f"{min(q['estimate'] for q in accuracy.values()):.1%} to {accuracy[best]['estimate']:.1%}"
answer.update(Markdown(f"**{len(classifiers)} classifiers name {span} of the held-out garments; {best} most (n = {quality_images}).**"))
Markdown(
    "| classifier | held-out accuracy | 95 % interval | n |\n|---|---|---|---|\n"
    + "\n".join(f"| {name} | {q['estimate']:.3f} | {q['low']:.3f} to {q['high']:.3f} | {q['n']} |" for name, q in accuracy.items())
)
