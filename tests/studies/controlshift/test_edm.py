import contextlib
import dataclasses
import hashlib
import math
import pickle
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_edm import TINY, TOLD, EDMPrecond, filled, numbered
from tiny_settings import SHIFTED

from cnslib.core import tables, workers
from cnslib.core.settings import read
from cnslib.studies.controlshift import datasets, edm
from cnslib.studies.controlshift.edm import ADM, PLUS, Architecture, Denoiser

SETTINGS = dataclasses.replace(SHIFTED, guidance=1.0, side=8)
NUMBERS = {"cat": 2, "dog": 0}
PUBLIC = {  # as the authors' code builds cifar10-32x32-cond and imagenet-64x64-cond
    PLUS: Architecture(PLUS, 32, 3, 128, 512, (256, 256, 256), (False, True, False), 4, classes=10, augmentations=9),
    ADM: Architecture(ADM, 64, 3, 192, 768, (192, 384, 576, 768), (False, True, True, True), 3, classes=1000, augmentations=0),
}
pytestmark = pytest.mark.usefixtures("in_place")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("edm") / "tiny.safetensors"
    save_file(filled(TINY[PLUS]).state_dict(), place, TOLD)
    return place


@pytest.fixture(scope="module")
def decoder(path):
    return edm.decoder(path, NUMBERS, SETTINGS)


def gaussian(deviation: float):
    """The best denoiser of images whose pixels are independent draws of N(0, deviation^2)."""
    return lambda noisy, sigma: noisy * deviation**2 / (deviation**2 + sigma.double() ** 2)


def test_heun_follows_the_flow_of_a_gaussian_to_its_exact_end_and_is_of_second_order():
    """x / sqrt(s^2 + sigma^2) stays constant along it, so z ends at 80 z s / sqrt(s^2 + 80^2); twice the steps, a quarter of the error.

    The step from sigma = 0.002 to 0 is one of Euler's in any case, and known.
    """
    z = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert torch.allclose(edm.sample(gaussian(0.5), z, steps=256), 80 * z * 0.5 / math.sqrt(0.25 + 6400), rtol=3e-4)
    end = 80 * 0.25 / math.sqrt((0.25 + 6400) * (0.25 + 0.002**2))
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    errors = np.array([edm.sample(gaussian(0.5), one, steps=steps).item() - end for steps in (100, 200, 400)])
    assert errors[:-1] / errors[1:] == pytest.approx(4, rel=0.05)


def test_a_pickle_is_refused_unread_and_the_recipe_in_the_error_makes_a_file_of_it(tmp_path, monkeypatch):
    class Bomb:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    for name, message in (
        ("bomb.pkl", "is a pickle, which runs code.*safetensors.torch.save_file"),
        ("bomb.pt", r"suffix: .*accepted: \.safetensors"),
    ):
        (tmp_path / name).write_bytes(pickle.dumps({"ema": Bomb()}, protocol=2))
        with pytest.raises(ValueError, match=f"(?s){name}.*{message}"):
            edm.load(tmp_path / name)
    assert not (tmp_path / "ran").exists()
    (tmp_path / "edm-cifar10-32x32-cond-vp.pkl").write_bytes(pickle.dumps({"ema": filled(TINY[PLUS], EDMPrecond)}))
    with contextlib.chdir(tmp_path):
        exec(textwrap.dedent(edm.RECIPE))
    assert edm.load(tmp_path / "edm-cifar10-32x32-cond-vp.safetensors").sizes == TINY[PLUS]


def test_the_data_sets_of_control_shift_are_drawn_by_it_and_step_zero_is_plain_sampling(decoder, path, tmp_path):
    datasets.make(decoder, tmp_path)
    assert len(datasets.evaluation_set(tmp_path, SETTINGS)) == 3 * 2 * 2 * len(NUMBERS)
    stored = datasets.load(tmp_path, "train_extend").query("`class` == 'cat'")
    z = datasets.start("train cat", range(1, 11), decoder.size, seed=1)
    z = datasets.shifted(z, "extend", 0.0, datasets.targets(decoder.size, seed=1))
    noisy, cats = torch.from_numpy(z).float().reshape(10, 3, 8, 8), torch.eye(3)[[2] * 10]
    given = {"denoise": partial(edm.load(path), labels=cats), "z": noisy, "steps": SETTINGS.drawing_steps}
    (drawn,) = workers.each(partial(edm.sample, **given), [()], device="cpu")  # in one thread, as in `datasets.make`
    grey = ((drawn / 2 + 0.5).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    assert np.array_equal(tables.pictures(stored, "train"), grey[:3]) and not np.array_equal(grey[0], grey[1])


def test_the_settings_name_the_decoder_and_its_classes_by_cifars_or_imagenets_names(path, tmp_path):
    base = read.load("params.yaml")["base"]
    chosen = dataclasses.replace(SETTINGS, decoder=f"edm:{path}", classes=["bird", "airplane"])
    found = edm.open_decoder(tmp_path, base, chosen, tmp_path)
    assert found.classes == ["bird", "airplane"] and found.origin.tokens == {"bird": "2", "airplane": "0"} and found.size == 3 * 8 * 8
    for name, number in {"truck": 9, "hen": 8}.items():  # of CIFAR-10 and of ImageNet; the tiny network knows 0 to 2
        with pytest.raises(ValueError, match=rf"edm: classes: {{'{name}': {number}}} is not accepted"):
            edm.open_decoder(tmp_path, base, dataclasses.replace(chosen, classes=[name]), tmp_path)


@pytest.mark.parametrize(
    ("family", "tensors", "parameters", "digest"),
    [
        (PLUS, 427, 55_735_299, "740b096010232034dff94eb5d05d5ff968025bd853ba989c97a3334ac33656c1"),
        (ADM, 553, 295_899_267, "a59bb78fad0da4fa29f9b3a2aa6f9f90b8498dfc3b531c9b26c20c22e80fee2a"),
    ],
)
def test_the_public_networks_have_the_published_tensors(family, tensors, parameters, digest):
    """The digest is that of the sorted lines "name shape" of the networks as the authors' code builds them."""
    with torch.device("meta"):
        denoiser = Denoiser(PUBLIC[family])
    shapes = {key: tuple(value.shape) for key, value in denoiser.state_dict().items()}
    assert len(shapes) == tensors and sum(value.numel() for value in denoiser.parameters()) == parameters
    assert hashlib.sha256("\n".join(sorted(f"{key} {shape}" for key, shape in shapes.items())).encode()).hexdigest() == digest
    assert edm.architecture(denoiser.state_dict(), Path()) == PUBLIC[family]


@pytest.mark.parametrize(
    ("family", "published"),
    [(PLUS, [0.02947, -0.10681, -0.01407, -0.18063, 0.02924, -0.39291]), (ADM, [-0.0657, 0.06931, 0.03745, -0.19914, 0.00365, -0.22159])],
)
def test_a_network_from_a_file_predicts_what_the_authors_code_predicts(family, published, tmp_path):
    """Pixel (3, 5) of two images under sigma 0.7, classes 1 and 2; weights, images and noise are numbered as here."""
    save_file(filled(TINY[family]).state_dict(), tmp_path / "tiny.safetensors", TOLD)
    denoiser = edm.load(tmp_path / "tiny.safetensors")
    noisy = 8 * 1.7 / math.sqrt(3 * 8 * 8) * numbered(torch.Size((2, 3, 8, 8)), 0)
    found = denoiser(noisy, torch.tensor(0.7), torch.eye(3)[[1, 2]])
    assert found[:, :, 3, 5].flatten().tolist() == pytest.approx(published, abs=2e-5)
    assert denoiser.sizes == TINY[family] and not any(value.requires_grad for value in denoiser.parameters())
