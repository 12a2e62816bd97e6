# opening
from IPython.display import Markdown, display

answer = display(Markdown("*The answer appears here when the last cell has run.*"), display_id="answer")

# imports
import pandas as pd
import torch
from matplotlib import pyplot as plt

from cnslib import adapters, encoders, health, models, paths, plots, provision, sliders, tables
from cnslib.config import Sliders
from cnslib.sliderstrips import strips

# settings
plots.use_style()
layout = paths.Layout(out)
health_keys = {"health_seeds": health_seeds, "health_steps": health_steps, "health_guidance": health_guidance, "least_gain": least_gain}
settings = Sliders(rank, alpha, eta, learning_rate, iterations, batch_size, denoising_steps, **health_keys, seed=seed)

# prompts
pipe = models.load_pipeline(paths.resolve(pipeline), device)
tokens = layout.artifacts("inversion")
models.load_tokens(pipe, tokens, classes)
origin = models.origin(paths.resolve(pipeline), tokens, classes)
pd.DataFrame([sliders.prompts(shifts[0], name) for name in classes], index=classes, columns=["c", "c+"])

# adapted
with adapters.fresh(pipe, rank=rank, alpha=alpha, generator=torch.Generator()) as parameters:
    names = pd.Series(list(adapters.layers(pipe.unet)))
    weights = sum(parameter.numel() for parameter in parameters)
kinds = names.str.extract(r"(attn1|conv1|conv2|time_emb_proj|conv_shortcut|downsamplers|upsamplers)")[0]
print(f"{weights} trainable weights beside {sum(p.numel() for p in pipe.unet.parameters())} of the UNet")
kinds.value_counts().rename_axis("kind").to_frame("modules")

# training
inputs = {"recipe": recipe, "settings": settings, "origin": origin}
found = provision.make_sliders(pipe, shifts, classes, **inputs, folder=layout.artifacts("sliders"))
released = 2 * iterations * batch_size * (denoising_steps / 2 + 4)
cost = {"ours": provision.evaluations(recipe, settings), "released code": released}
pd.DataFrame({"UNet evaluations per slider": cost, "all sliders": {key: value * len(found) for key, value in cost.items()}}).astype(int)

# loss
parts = [sliders.loss_curve(path).assign(shift=shift) for (shift, name), path in found.items()]
losses = pd.concat(parts).groupby(["iteration", "shift"])[["loss", "untrained"]].sum().unstack("shift").rolling(5, min_periods=1).sum()
remaining = losses["loss"] / losses["untrained"]
figure, axes = plt.subplots(figsize=(4, 2.6))
remaining.plot(ax=axes, color="0.75", linewidth=0.8, legend=False)
remaining.mean(axis=1).plot(ax=axes, ylabel="share of the way to go", ylim=(0, None))
plots.save(figure, layout.figures / "sliders_loss", remaining.stack().rename("remaining").reset_index())

# health
judge = health.Judge(encoders.Clip(clip, device=device), encoders.ImageEncoder(image_encoder, device=device))
report = health.report(pipe, found, scales=scales, settings=settings, origin=origin, judge=judge)
summary = health.per_slider(report)
health.require_gain(summary, least=least_gain)
summary.sort_values("gain").head().round(3)

# curves
measured = pd.concat([health.curves(report, column).assign(measure=column) for column in ("alignment", "structure")])
figure = plots.panels(measured, plots.estimate_lines, columns=5, x="scale", hue="measure", label="cosine")
plots.caption(figure, f"{plots.extent(measured['n'])} sliders per shift; bands: 95 % bootstrap over sliders")
plots.save(figure, layout.figures / "sliders_health", measured)

# strips
shown = classes[-1]
own, path = {shift: found[shift, shown] for shift in shifts}, layout.artifacts("sliders") / "strips.parquet"
pictures = strips(pipe, own, shown, scales=scales, settings=settings, seed=1, origin=origin, path=path)
figure, axes = plt.subplots(figsize=(5, 1.0 * len(shifts) + 0.4))
plots.contact_sheet(axes, pictures, rows=shifts, columns=[str(scale) for scale in scales])
plots.caption(figure, f"{shown}, seed 1; columns: slider scale")
plots.save(figure, layout.figures / "sliders_strips", report[(report["class"] == shown) & (report["seed"] == 1)])

# paper
rising = health.over_sliders(summary["rising"])
display(health.steps(report).pivot_table(index="shift", columns="scale", values="rises").round(2))
verdict = "higher" if rising["low"] > 0.73 else "lower" if rising["high"] < 0.73 else "agrees"
row = {"quantity": "share of steps that raise the alignment", "ours": rising["estimate"], "low": rising["low"], "high": rising["high"]}
pd.DataFrame([row | {"published": 0.73, "difference": rising["estimate"] - 0.73, "verdict": verdict}]).round(3)

# answer
kept = health.over_sliders(summary["structure"])
low, high = rising["low"], rising["high"]
word = "Yes, in" if low > 0.5 else "Not reliably: only in"
first = f"{word} {rising['estimate']:.0%} of the steps over {len(summary)} sliders (95 % interval {low:.0%} to {high:.0%})"
sentence = f"**{first}; at scale {max(scales)} the features keep a cosine of {kept['estimate']:.2f} with the unshifted picture.**"
answer.update(Markdown(sentence))

# outputs
count = {"n": len(found), **dict.fromkeys(("estimate", "low", "high"), len(found))}
gain = health.over_sliders(summary["gain"])
metrics = {"monotone_share": rising, "sliders": count, "alignment_gain": gain, "structure_kept": kept}
tables.write_metrics(layout.metrics / "sliders.json", metrics)
print(f"{len(found)} sliders, {len(report)} rows of health")
