import gzip
import hashlib
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

from cnslib.core import paths
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.data import imagenet
from cnslib.world import cutouts, install, scenes
from cnslib.world.cutouts import CutOut


def test_the_set_is_what_the_mapping_says():
    kept = install.listed()
    assert len(kept) >= 60 and kept["class"].nunique() >= 50
    pd.testing.assert_frame_equal(cutouts.contents(paths.PHOTOS), kept[list(cutouts.COLUMNS)], check_dtype=False)
    assert {path.name for path in paths.PHOTOS.glob("*.webp")} == set(kept["file"])
    for row in install.mapping().to_dict("records"):
        assert (imagenet.wnids()[row["index"]], imagenet.labels()[row["index"]]) == (row["wnid"], row["class"])


def disc(label: str = "basketball", side: int = 120) -> CutOut:
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    inside = (x**2 + y**2 < (side / 2 - 2) ** 2).astype(np.uint8)
    return CutOut(label, 1, Image.fromarray(np.stack([220 * inside, 20 * inside, 20 * inside, 255 * inside], -1), "RGBA"))


def test_the_object_is_whole_keeps_its_colour_and_hides_the_background():
    scene = cutouts.scene(disc(), seed=1)[0]
    rows = scene.mask[0, 0].amax(1) > 0.5
    diameter = int(rows.sum())
    assert cutouts.EXTENT[0] * 256 - 8 <= diameter <= cutouts.EXTENT[1] * 256
    assert scene.mask.sum().item() == pytest.approx(np.pi * diameter**2 / 4, rel=0.03)
    assert not any(edge.any() for edge in (scene.mask[..., 0, :], scene.mask[..., -1, :], scene.mask[..., 0], scene.mask[..., -1]))
    middle = scene.image[0, :, scene.mask[0, 0] == 1].median(1)[0] * 255
    assert middle.tolist() == pytest.approx([220, 20, 20], abs=2)
    outside = scene.mask == 0
    assert torch.equal(scene.image * outside, scene.background * outside)


@pytest.mark.parametrize("shift", SHIFTS[::5])
def test_severity_zero_is_the_unshifted_image_and_one_is_another(shift):
    plain = cutouts.shifted(disc(), UNSHIFTED, [0.0], seed=1)[0]
    none, full = cutouts.shifted(disc(), shift, [0.0, 1.0], seed=1)
    assert np.array_equal(none, plain)
    assert np.abs(full.astype(int) - plain).mean() > 5


def test_pose_and_scenery_belong_to_the_cut_out_and_the_seed():
    images = [cutouts.shifted(disc(label), UNSHIFTED, [0.0], seed=seed)[0] for label, seed in (("a", 1), ("a", 1), ("b", 1), ("a", 2))]
    assert np.array_equal(images[0], images[1])
    assert all(np.abs(images[0].astype(int) - other).mean() > 5 for other in images[2:])


def test_the_converted_squeezenet_sees_through_torchvisions_transform_what_caffe_gave_it(tmp_path):
    """Random weights in the package's layout: the same logits from blue, green and red less the means as from normalised pictures."""
    network = torchvision.models.squeezenet1_1(weights=None).eval()
    fires = [f"fire{number}/{part}" for number in range(2, 10) for part in ("squeeze1x1", "expand1x1", "expand3x3")]
    arrays = [(t.permute(2, 3, 1, 0) if t.ndim == 4 else t).numpy() for t in network.state_dict().values()]
    layers = dict(zip(["conv1", *fires, "conv10"], zip(arrays[::2], arrays[1::2], strict=True), strict=True))
    path = tmp_path / "weights.pkl"
    path.write_bytes(pickle.dumps(layers, protocol=4))
    converted = torchvision.models.squeezenet1_1(weights=None).eval()
    converted.load_state_dict(install.squeezenet(path))
    pixels = torch.rand(2, 3, 64, 64)
    caffe = (255 * pixels - torch.tensor(install.CAFFE_MEAN)[:, None, None]).flip(1)
    torch.testing.assert_close(converted(v2.functional.normalize(pixels, *install.IMAGENET)), network(caffe), rtol=1e-3, atol=1e-3)


def test_the_files_of_the_garments_are_copied_once_and_others_are_named_with_what_to_do(tmp_path, monkeypatch):
    source, target, content = tmp_path / "files", tmp_path / "target", gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3]))
    monkeypatch.setattr(scenes, "FILES", {"images.gz": hashlib.sha256(content).hexdigest()})
    with pytest.raises(FileNotFoundError, match=r"images\.gz is missing: install it with `apt-get install dataset-fashion-mnist`"):
        install.garments(source, target)
    source.mkdir()
    (source / "images.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"images\.gz has sha256"):
        install.garments(source, target)
    (target / "images.gz").write_bytes(content)
    install.garments(source, target)
    assert scenes.read_idx(target / "images.gz").tolist() == [1, 2, 3]
