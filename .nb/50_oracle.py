# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from cnslib import manifest, models, paths, training, world, zoo
from cnslib.config import SHIFTS

# train
judge = world.garments(paths.GARMENTS, "judge")
schedule = training.Schedule(steps, batch_size, learning_rate, average=average, seed=seed)
oracle = zoo.train_oracle(
    judge, architecture=architecture, arguments=arguments, schedule=schedule, checkpoint=paths.CHECKPOINTS / "oracle.pt", device=device
)
zoo.save(oracle, paths.MODELS / "oracle", architecture=architecture, arguments=arguments)

# judge
heldout = world.garments(paths.GARMENTS, "heldout")
plain = world.sample(heldout, ("oracle", "class"), quality_images, style="catalog", unshifted=1.0)
heavy = world.sample(heldout, ("oracle", "shift"), quality_images, style="web", unshifted=0.0, lowest=0.5)
real_class = zoo.class_correct(oracle, plain)
real_shift = zoo.predict(oracle, heavy.image)[:, zoo.SHIFT_OUTPUTS].argmax(1) == heavy.shift

# class
pipe = models.load_pipeline(paths.MODELS / "mini-sd", device)
asked = [i for i in range(len(world.CLASSES)) for _ in range(prompt_seeds)]
numbers = list(range(prompt_seeds)) * len(world.CLASSES)
pictures = models.sample(pipe, [world.caption(world.CLASSES[i]) for i in asked], numbers, steps=sampling_steps, guidance=guidance)
answers = zoo.predict(oracle, pictures.permute(0, 3, 1, 2) / 255)[:, : len(world.CLASSES)].argmax(1)

# shift
pairs = [(c, s) for s in range(len(SHIFTS)) for c in range(len(world.CLASSES)) for _ in range(2)]
prompts = [world.caption(world.CLASSES[c], SHIFTS[s]) for c, s in pairs]
shifted = models.sample(pipe, prompts, list(range(len(pairs))), steps=sampling_steps, guidance=guidance)
named = zoo.predict(oracle, shifted.permute(0, 3, 1, 2) / 255)[:, zoo.SHIFT_OUTPUTS].argmax(1)

# record
quality = {
    "real_class_accuracy": manifest.share(real_class),
    "real_shift_accuracy": manifest.share(real_shift),
    "text_class_accuracy": manifest.share([a == b for a, b in zip(answers.tolist(), asked, strict=True)]),
    "text_shift_accuracy": manifest.share([a == s for a, (_, s) in zip(named.tolist(), pairs, strict=True)]),
}

# answer
modules = [zoo, training, *world.RENDERER]
entry = manifest.record(paths.MODELS, "oracle", seed=seed, steps=steps, quality=quality, modules=modules)
said = [f"- **{key}**: {q['estimate']:.3f} ({q['low']:.3f} to {q['high']:.3f}, n = {q['n']})" for key, q in quality.items()]
answer.update(Markdown("\n".join(said)))
