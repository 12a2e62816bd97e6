# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
from diffusers import AutoencoderKL, StableDiffusionPipeline
from torchvision.utils import make_grid

from cnslib import autoencoder, diffusion, manifest, models, paths, plots, training, world

# latents
web = world.garments(paths.GARMENTS, "web")
vae = AutoencoderKL.from_pretrained(paths.MODELS / "mini-sd" / "vae")
diffusion.captions()[:3], len(diffusion.captions()), len(diffusion.tokenizer())

# train
schedule = training.Schedule(steps, batch_size, learning_rate, average=average, seed=seed)
network = {"channels": channels, "width": width, "layers": layers}
texts = {"images": images, "caption_dropout": caption_dropout}
pipe = diffusion.train(vae, web, **network, **texts, schedule=schedule, folder=paths.CHECKPOINTS, device=device)
diffusion.save(pipe, paths.MODELS / "mini-sd")

# draw
pipe = StableDiffusionPipeline.from_pretrained(paths.MODELS / "mini-sd")
shown = (world.UNSHIFTED, "heavy snow", "cartoon style", "painting style")
prompts = [world.caption(name, shift) for shift in shown for name in world.CLASSES]
pictures = models.sample(pipe, prompts, list(range(10)) * len(shown), steps=30, guidance=3.0)
plots.show_image(make_grid(pictures.permute(0, 3, 1, 2) / 255, nrow=10, padding=1))

# record
parameters = sum(p.numel() for part in (pipe.unet, pipe.text_encoder, pipe.vae) for p in part.parameters())
entry = manifest.record(
    paths.MODELS, "mini-sd", seed=seed, steps=steps, quality={}, modules=[diffusion, autoencoder, training, *world.RENDERER]
)
answer.update(Markdown(f"**The pipeline has {parameters / 1e6:.1f} million parameters and draws all {len(prompts)} prompts above.**"))
