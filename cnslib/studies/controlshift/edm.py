"""EDM's public checkpoints as the decoder of Control+Shift (section 4): reading them, Heun's method, and what `datasets` draws from.

Of the same random weights, networks and sampler give in single precision what the code of EDM's authors gives, to within 2e-6 of
images in [-1, 1]; of 9,216 bytes of the rounded pictures 2 differed. The checkpoints `edm-cifar10-32x32-cond-vp.pkl` and
`edm-imagenet-64x64-cond-adm.pkl` have a non-commercial licence of their own. They are pickles, which run code when they are read, and
nothing here reads these: RECIPE turns one into tensors, once, in a checkout of that code (docs/paper_scale.md).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from diffusers import EDMEulerScheduler, HeunDiscreteScheduler
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from cnslib.core import recipes, units
from cnslib.core.names import demand
from cnslib.core.settings.sections import Controlshift
from cnslib.models import text_to_image
from cnslib.models.weights import header, read_weights, require_same, shapes
from cnslib.studies.controlshift.datasets import Decoder, Pictures
from cnslib.studies.controlshift.edmnet import ADM, PLUS, Architecture, Denoiser, Images

CIFAR10 = {name: i for i, name in enumerate(["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"])}
RECIPE = """
    import pickle, safetensors.torch
    network = pickle.load(open("edm-cifar10-32x32-cond-vp.pkl", "rb"))["ema"]
    told = {"preconditioning": type(network).__name__}
    safetensors.torch.save_file(network.state_dict(), "edm-cifar10-32x32-cond-vp.safetensors", told)"""
PRECONDITIONING = "EDMPrecond"  # what the EDM training wraps its networks in; those of the baselines have the same tensors
SIGMA_MAX = 80.0  # the noise that a drawing begins with; EDMEulerScheduler's, too


def load(path: Path, device: str = "cpu") -> Denoiser:
    """The denoiser of a checkpoint's tensors (.safetensors), in single precision, frozen; its sizes are read from the tensors.

    Raises ValueError for a pickle, with the recipe that makes a file of tensors of it, for a baseline of the paper (VP, VE, iDDPM),
    which the file's header tells, and for tensors that are missing, unexpected or of another shape, which are counted. A network
    without classes and an NCSN++ are among these. Other errors are those of `weights.read_weights`.
    """
    once = f"in a checkout of the code that the file belongs to, once:{RECIPE}"
    if path.suffix in (".pkl", ".pickle"):
        raise ValueError(f"{path} is a pickle, which runs code when it is read; accepted: .safetensors, which this makes of it {once}")
    demand(path.suffix == ".safetensors", f"{path}, suffix", path.suffix, ".safetensors")
    weights, found = read_weights(path), header(path).get("preconditioning", "")
    demand(found == PRECONDITIONING, f"{path}, preconditioning in its header", found, f"{PRECONDITIONING}, as this writes it {once}")
    with torch.device("meta"):
        denoiser = Denoiser(architecture(weights, path))
    sizes = denoiser.sizes
    network = f"the tensors of a {sizes.family} of {sizes.side} px with channels {sizes.widths}, and nothing else"
    require_same(shapes(weights), shapes(denoiser.state_dict()), f"{path} does not fit", network)
    plain = {key: value.to(torch.float32, copy=True) for key, value in weights.items()}  # a file's own memory is not aligned: other sums
    denoiser.load_state_dict(plain, strict=True, assign=True)
    return denoiser.to(device).eval().requires_grad_(False)


def architecture(weights: Mapping[str, Tensor], path: Path) -> Architecture:
    """The sizes of a checkpoint's network. Raises ValueError, with their number, where tensors that tell them are missing."""
    family = ADM if "model.out_conv.weight" in weights else PLUS
    sides = sorted({int(found[1]) for key in weights if (found := re.match(r"model\.enc\.(\d+)x\1_", key))}, reverse=True)
    stem, level = "model.enc.{0}x{0}_conv.weight".format(*sides or [0]), "model.enc.{0}x{0}_block0.{1}.weight"
    told = [stem, "model.map_layer0.weight", "model.map_label.weight", *(level.format(side, "conv0") for side in sides)]
    told += ["model.map_augment.weight"] if family == PLUS else []
    if lost := [key for key in told if key not in weights or weights[key].ndim < 2]:
        raise ValueError(
            f"{path} is no EDM checkpoint with classes, or not whole: {len(lost)} of {len(told)} tensors that tell its "
            f"sizes are missing, for example {lost[0]}; accepted: {PLUS} or {ADM}, with classes, of the EDM training"
        )
    embedding, channels = weights["model.map_layer0.weight"].shape
    return Architecture(
        family=family,
        side=sides[0],
        colours=weights[stem].shape[1],
        channels=channels,
        embedding=embedding,
        widths=tuple(weights[level.format(side, "conv0")].shape[0] for side in sides),
        attention=tuple(level.format(side, "qkv") in weights for side in sides),
        blocks=sum(bool(re.fullmatch(rf"model\.enc\.{sides[0]}x{sides[0]}_block\d+\.conv0\.weight", key)) for key in weights),
        classes=weights["model.map_label.weight"].shape[1],
        augmentations=weights["model.map_augment.weight"].shape[1] if family == PLUS else 0,
    )


class Heun(HeunDiscreteScheduler):
    """Algorithm 1 with EDM's noise levels (Eq. 5: from 80 down to 0.002, rho = 7, then 0); its timesteps are the levels themselves.

    Every step but the last has two: Heun's method evaluates the network at both ends.
    """

    def set_timesteps(self, num_inference_steps=None, device=None, num_train_timesteps=None, timesteps=None):
        """Sets the noise levels of so many steps."""
        super().set_timesteps(num_inference_steps, device, num_train_timesteps, timesteps)
        levels = EDMEulerScheduler()
        levels.set_timesteps(num_inference_steps)
        self.sigmas = torch.cat([levels.sigmas[:1], levels.sigmas[1:-1].repeat_interleave(2), levels.sigmas[-1:]])
        self.timesteps = self.sigmas[:-1].to(device)


@torch.no_grad()
def sample(denoise: Callable[[Images, Float[Tensor, ""]], Images], z: Images, *, steps: int) -> Images:
    """Images, in [-1, 1] but for overshoots, of latents z from the standard normal by Heun's method without noise (algorithm 1).

    `denoise(noisy, sigma)` is D(x; sigma), evaluated 2 steps - 1 times; the type of z is kept. Images are measured in units of the
    largest noise on the way, so that a drawing begins with its latent itself: Heun's method is the same in any unit.
    """
    scheduler = Heun(prediction_type="sample")
    scheduler.set_timesteps(steps, z.device)
    for sigma in scheduler.timesteps:
        z = scheduler.step(denoise(SIGMA_MAX * z, sigma) / SIGMA_MAX, sigma, z).prev_sample
    return SIGMA_MAX * z


def decoder(path: Path, numbers: Mapping[str, int], settings: Controlshift, *, device: str = "cpu") -> Decoder:
    """What `datasets.make` draws from: a checkpoint, with a name for each wanted class number of it.

    The digest of its data sets covers file, class numbers and recipe. Raises ValueError for guidance other than 1 (the network knows
    no image without a class), no classes and numbers that the network lacks; other errors as those of `load`.
    """
    demand(settings.guidance == 1, "controlshift.guidance", settings.guidance, "1.0: an EDM checkpoint cannot draw without a class")
    denoiser = load(path, device)
    sizes = denoiser.sizes
    known = len(numbers) > 0 and all(0 <= number < sizes.classes for number in numbers.values())
    demand(known, "edm: classes", dict(numbers), f"names of one or more of the numbers 0 to {sizes.classes - 1}")
    base = units.digest(recipes.EDM, units.file_digest(path))
    origin = text_to_image.Origin(base, {name: str(number) for name, number in numbers.items()})
    images = partial(drawn, denoiser, dict(numbers), settings.drawing_steps, device)
    return Decoder(images, sizes.colours * sizes.side**2, device, origin, list(numbers), settings)


@torch.no_grad()
def drawn(denoiser: Denoiser, numbers: dict[str, int], steps: int, device: str, name: str, z: Float[np.ndarray, "images d"]) -> Pictures:
    """Images of a class from latents, which are pixels in units of the largest noise."""
    sizes = denoiser.sizes
    noisy = torch.from_numpy(z).float().reshape(-1, sizes.colours, sizes.side, sizes.side).to(device)
    labels = functional.one_hot(torch.full((len(z),), numbers[name]), sizes.classes).float().to(device)
    made = sample(partial(denoiser, labels=labels), noisy, steps=steps)
    return ((made / 2 + 0.5).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
