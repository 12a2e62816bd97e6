"""Drawing by `cns sliders`: a call of the pipeline per scale, as diffusers is used, against ours, one call for all scales.

`python benchmarks/pipelines.py [--pipeline DIR] [--device cuda]`
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch
import turns

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.method import pipelines, sliders
from cnslib.models import text_to_image
from cnslib.models.adapters import NAME

PROMPT = "a picture of a sneaker"
SCALES = [-2.0, -1.0, 0.0, 1.0, 2.0, 2.5]
SIZE = 0.02  # standard deviation of both factors of the slider


class Drawing:
    """The pictures of one seed at all scales of a random slider, which acts from the first step on."""

    def __init__(self, folder: Path, device: str):
        """Loads the pipeline and writes a slider for it."""
        settings = read.load(paths.resolve("params.yaml"))["sliders"]
        self.pipe = pipelines.load(folder, device)
        self.call = pipelines.Call(steps=16, guidance=2.25)
        self.path = Path(tempfile.mkdtemp()) / "slider.safetensors"
        generator = torch.Generator().manual_seed(0)
        with pipelines.fresh(self.pipe, settings=settings, generator=generator, recipe=sliders.RECIPES["graded"]) as parameters:
            for parameter in parameters:
                parameter.data.copy_(SIZE * torch.randn(parameter.shape, generator=generator))
            pipelines.save(pipelines.denoiser(self.pipe), self.path, {})

    def reference(self) -> torch.Tensor:
        """Loads the adapter, sets its scale, calls the pipeline, for each picture."""
        network, drawn = pipelines.denoiser(self.pipe), []
        network.load_lora_adapter(self.path, prefix=None, adapter_name=NAME, use_safetensors=True)
        for scale in SCALES:
            network.set_adapters(NAME, scale)
            noise = torch.Generator().manual_seed(1)
            drawn.append(self.pipe(PROMPT, generator=noise, output_type="pt", **self.call.arguments(self.pipe)).images)
        network.unload_lora()
        return text_to_image.as_bytes(torch.cat(drawn))

    def ours(self) -> torch.Tensor:
        """As `cns sliders` draws."""
        with pipelines.loaded(self.pipe, self.path):
            return pipelines.draw(self.pipe, PROMPT, 1, SCALES, call=self.call, sigma=1.0)


def main() -> int:
    """The measured ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", type=Path, default=paths.resolve("data/models/mini-sd"))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    drawing = Drawing(options.pipeline, options.device)
    drawing.ours()
    name = f"{len(SCALES)} scales of {options.pipeline.name}"
    return turns.report(turns.Contest(name, drawing.reference, drawing.ours, lambda a, b: (a.int() - b.int()).abs().max(), 1))


if __name__ == "__main__":
    sys.exit(main())
