"""One slider of any text-to-image pipeline of diffusers, trained, saved and drawn: `cns sliders`, the quickest way in (docs/models.md)."""

import argparse
import sys
from pathlib import Path

import torch
from matplotlib import pyplot as plt

from cnslib.core import units
from cnslib.core.names import FILE_NAME_RULE, PROMPT, demand, identifier, is_file_name, text
from cnslib.core.settings import read
from cnslib.method import pipelines
from cnslib.models import classifiers
from cnslib.models.adapters import slider_path
from cnslib.plots import sheets


def write_strip(path: Path, pictures: pipelines.Pictures, *, scales: list[float], row: str) -> None:
    """The pictures side by side, each under its scale, at their own size or 128 pixels."""
    side = max(pictures.shape[2], 128) / 100  # inches
    figure, axes = plt.subplots(figsize=(side * (len(scales) + 1), side + 0.6))
    sheets.contact_sheet(axes, pictures.numpy()[None], rows=[row], columns=[f"{scale:g}" for scale in scales])
    with units.atomic(path) as partial:
        figure.savefig(partial, format="png", dpi=200, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def make(options: argparse.Namespace) -> list[Path]:
    """Trains the slider unless it is there already, draws its strip, and returns both files. Errors are those of `pipelines`."""
    for name in ("shift", "class"):
        demand(is_file_name(vars(options)[name]), f"--{name}", vars(options)[name], FILE_NAME_RULE)
    classifiers.require_device(options.device)
    sections, name = read.load(options.params, options.overlay or ""), vars(options)["class"]
    base, settings = sections["base"], sections["sliders"]
    half = base.recipe == "released" or options.device != "cpu"
    pipe = pipelines.load(options.pipeline, options.device, torch.bfloat16 if half else torch.float32)
    call = pipelines.Call(steps=options.steps, size=options.size, guidance=options.guidance, embedded=options.embedded)
    slider, digest = slider_path(options.folder, options.shift, name), units.directory_digest(options.pipeline)
    pipelines.train(pipe, options.shift, name, slider, settings=settings, recipe=base.recipe, base=digest, call=call)
    scales, prompt = options.scales or base.scales, options.prompt or PROMPT.format(token=name)
    with pipelines.loaded(pipe, slider):
        pictures = pipelines.draw(pipe, prompt, options.seed, scales, call=call, sigma=options.sigma)
    strip = slider.with_name(f"{identifier(name)}_seed_{options.seed}.png")
    write_strip(strip, pictures, scales=scales, row=text(options.shift, settings.texts))
    return [slider, strip]


def main(arguments: list[str]) -> int:
    """Command line; returns 2, with one line, where pipeline or options are not what they should be."""
    parser = argparse.ArgumentParser(prog="cns sliders", description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", type=Path, required=True, help="local directory, as save_pretrained writes it")
    parser.add_argument("--shift", required=True, help='as "heavy snow"; the prompt says "in heavy snow", or its words in sliders.texts')
    parser.add_argument("--class", required=True, help='as "sneaker"')
    parser.add_argument(
        "--params", default="params.yaml", help="parameter file: `sliders`, `base.recipe`, `base.scales` (default params.yaml)"
    )
    parser.add_argument("--overlay", help="file whose keys replace some of its values, such as paper.yaml for large models")
    parser.add_argument("--folder", type=Path, default=Path("build/sliders"), help="where slider and strip go (default build/sliders)")
    parser.add_argument("--scales", type=float, nargs="+", help="of the strip; below 0 the shift is taken away")
    parser.add_argument("--prompt", help='of the strip (default "a picture of a CLASS")')
    parser.add_argument("--seed", type=int, default=1, help="of the strip (default 1)")
    parser.add_argument("--steps", type=int, help="of the strip (default: the pipeline's own, as for what follows)")
    parser.add_argument("--guidance", type=float, help="classifier-free guidance of the strip")
    parser.add_argument("--embedded", type=float, help="guidance that the denoiser takes as an input (FLUX)")
    parser.add_argument("--size", type=int, help="pixels of a side, of training and strip")
    parser.add_argument("--sigma", type=float, default=pipelines.SIGMA, help="noise level from which on the slider acts (default t = 750)")
    parser.add_argument("--device", default="cpu", help="torch device (default cpu)")
    try:
        print("\n".join(map(str, make(parser.parse_args(arguments)))))
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
