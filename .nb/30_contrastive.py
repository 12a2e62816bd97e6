# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from cnslib import contrastive, diffusion, encoders, manifest, paths, training, world
from cnslib.config import SHIFTS

# train
web = world.garments(paths.GARMENTS, "web")
schedule = training.Schedule(steps, len(diffusion.captions()), learning_rate, average=average, seed=seed)
model, settings = contrastive.train(
    web, vision=vision, width=width, layers=layers, schedule=schedule, checkpoint=paths.CHECKPOINTS / "contrastive.pt", device=device
)
contrastive.save(model, settings, paths.MODELS / "mini-clip")

# class
clip = encoders.Clip(str(paths.MODELS / "mini-clip"), device="cpu")
heldout = world.garments(paths.GARMENTS, "heldout")
plain = world.sample(heldout, ("contrastive", "class"), quality_images, style="catalog", unshifted=1.0)
texts = clip.text_features([world.caption(name) for name in world.CLASSES])
right = (clip.image_features(world.to_uint8(plain.image)) @ texts.T).argmax(1) == plain.label

# shift
shifted = world.sample(heldout, ("contrastive", "shift"), quality_images, style="web", unshifted=0.0, lowest=0.5)
bank = clip.text_features([world.caption(name, shift) for name in world.CLASSES for shift in SHIFTS])
scores = clip.image_features(world.to_uint8(shifted.image)) @ bank.T
given = scores.reshape(quality_images, len(world.CLASSES), len(SHIFTS))[range(quality_images), shifted.label]
named = given.argmax(1) == shifted.shift

# record
quality = {"clip_class_accuracy": manifest.share(right), "clip_shift_accuracy": manifest.share(named)}
modules = [contrastive, diffusion, training, *world.RENDERER]
entry = manifest.record(paths.MODELS, "mini-clip", seed=seed, steps=steps, quality=quality, modules=modules)
said = [f"{key}: {q['estimate']:.3f} ({q['low']:.3f} to {q['high']:.3f}, n = {q['n']})" for key, q in quality.items()]
answer.update(Markdown(f"**{'; '.join(said)}**"))
