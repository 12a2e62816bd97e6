# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import torch
from torchvision.utils import make_grid

from cnslib import autoencoder, manifest, paths, plots, training, world

# garments
web, heldout = (world.garments(paths.GARMENTS, pool) for pool in ("web", "heldout"))
sample = world.sample(heldout, ("autoencoder", "look"), 24, style="web")
plots.show_image(make_grid(sample.image, nrow=12, padding=1))

# train
schedule = training.Schedule(steps, batch_size, learning_rate, average=average, seed=seed)
network = {"channels": channels, "latent_channels": latent_channels, "kl_weight": kl_weight}
checkpoint = paths.CHECKPOINTS / "autoencoder.pt"
vae = autoencoder.train(web, **network, schedule=schedule, checkpoint=checkpoint, device=device)
vae.half().save_pretrained(paths.MODELS / "mini-sd" / "vae")
vae = vae.float()

# measure
psnr = autoencoder.psnr_by_shift(vae, heldout, images=quality_images, seed=seed)
table = {name: manifest.mean(values) for name, values in psnr.items()}
average_psnr = manifest.mean(torch.cat(list(psnr.values())))
worst = min(table, key=lambda name: table[name]["estimate"])
lowest, n = table[worst]["estimate"], table[worst]["n"]
sentence = f"The VAE keeps {average_psnr['estimate']:.1f} dB on average; its worst shift is {worst} with {lowest:.1f} dB (n = {n})."
answer.update(Markdown(f"**{sentence}**"))

# table
Markdown(
    "| shift | PSNR (dB) | 95 % interval |\n|---|---|---|\n"
    + "\n".join(f"| {name} | {q['estimate']:.1f} | {q['low']:.1f} to {q['high']:.1f} |" for name, q in sorted(table.items()))
)

# pairs
output = vae.decode(autoencoder.encode(vae, sample.image)).sample.detach() / 2 + 0.5
plots.show_image(make_grid(torch.cat([sample.image[:12], output.clamp(0, 1)[:12]]), nrow=12, padding=1))

# record
quality = {"vae_psnr_db": average_psnr, "vae_psnr_db_worst_shift": table[worst]}
entry = manifest.record(
    paths.MODELS, "mini-sd/vae", seed=seed, steps=steps, quality=quality, modules=[autoencoder, training, *world.RENDERER]
)
