"""A classifier that sees pictures otherwise than it was trained to is noticed, one that sees them rightly is not."""

import json

import numpy as np
import published_pictures
import pytest
import torch
from PIL import Image
from timm.data import create_transform
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import nn
from torchvision.transforms import v2

from cnslib.core import paths
from cnslib.models import classifiers, encoders
from cnslib.studies import preprocessing, report
from cnslib.tools import report as command

RESNET = paths.resolve("data/models/classifiers/resnet")
PLAIN = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Redness(nn.Module):
    """Says "tomato" where red, the first channel, is above blue."""

    def forward(self, pixels):
        return (pixels[:, 0] - pixels[:, 2]).mean(dim=(1, 2))[:, None] * torch.tensor([1.0, -1.0])


def tomatoes(transform) -> classifiers.Classifier:
    return classifiers.user_classifier(Redness(), name="mine", labels=["tomato", "sky"], transform=transform)


PICTURES = [np.full((8, 8, 3), colour, np.uint8) for colour in ((200, 30, 20), (20, 30, 200)) for _ in range(25)]
CLASSES = ["tomato"] * 25 + ["sky"] * 25


def test_channels_in_the_other_order_are_noticed_and_the_test_is_mcnemars():
    right, wrong = (
        preprocessing.check(tomatoes(transform), PICTURES, CLASSES) for transform in (PLAIN, lambda image: PLAIN(image).flip(0))
    )
    assert right["right"].tolist() == [50, 50, 50, 0, 0] and preprocessing.verdict(right, confidence=0.95)[1] is False
    assert wrong["right"].tolist() == [0, 0, 0, 50, 50] and wrong["p"].tolist()[3:] == pytest.approx([4 * 0.5**50] * 2)
    sentence, noticed = preprocessing.verdict(wrong, confidence=0.95)
    assert noticed and "Of 50 unshifted pictures it knows 0; " in sentence and "50 if shown as reversed" in sentence


def test_a_usual_normalisation_is_that_of_timm_after_the_models_own_resizing():
    network, _ = encoders.timm_model("mine", str(RESNET), "cpu")
    own = classifiers.user_classifier(network, name="mine", labels=json.loads(paths.resolve("data/models/labels.json").read_text()))
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 70, 3), dtype=np.uint8))
    found, settings = preprocessing.usual(own), own.settings
    expected = create_transform(**settings | {"mean": IMAGENET_DEFAULT_MEAN, "std": IMAGENET_DEFAULT_STD})(image)
    assert torch.allclose(found["imagenet"].transform(image), expected, atol=1e-4)
    pixels = create_transform(**settings | {"mean": (0, 0, 0), "std": (1, 1, 1)})(image)
    means = torch.tensor([104.006, 116.669, 122.679]).reshape(3, 1, 1)
    assert torch.allclose(found["caffe"].transform(image), pixels.flip(0) * 255 - means, atol=1e-2)
    assert set(found) == {"imagenet", "inception", "plain", "caffe", "reversed"}
    assert "plain" not in preprocessing.usual(tomatoes(PLAIN)) and not preprocessing.usual(
        tomatoes(lambda image: PLAIN(image) - PLAIN(image))
    )


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> report.Benchmark:
    return command.exported(published_pictures.write(tmp_path_factory.mktemp("published") / "cns_bench"))


def test_the_shipped_resnet_is_noticed_with_plain_pixels_and_not_with_its_own(benchmark, recwarn):
    pictures, classes = benchmark.pictures()
    assert len(pictures) == len(classes) == 48 and len(set(classes)) == 8
    own = report.report(str(RESNET), name="mine", on=benchmark)
    assert "none significantly better" in own.text() and not recwarn
    network, _ = encoders.timm_model("mine", str(RESNET), "cpu")
    with pytest.warns(UserWarning, match=r"mine: the preprocessing seems to be wrong: Of 48 .*imagenet is significantly better"):
        wrong = report.report(network, name="mine", transform=PLAIN, on=benchmark)
    assert "significantly better (McNemar's exact test" in wrong.text()


def test_another_normalisation_can_be_asked_for_and_is_printed(benchmark):
    with pytest.warns(UserWarning, match="imagenet is significantly better"):
        found = report.report(str(RESNET), name="mine", on=benchmark, normalised="inception")
    assert "normalised inception" in found.about
    with pytest.raises(ValueError, match="preprocessing: 'bgr' is not accepted; accepted: imagenet, inception, plain, caffe, reversed"):
        report.report(str(RESNET), name="mine", on=benchmark, normalised="bgr")
