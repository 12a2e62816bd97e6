"""What others bring to `cns report`, right and wrong: no number is silently wrong. Right is 96 % at scale 0 and 55 % at 2.5, n = 96."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import published_pictures
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from cnslib.core import paths
from cnslib.data import imagenet, official
from cnslib.models import classifiers, encoders
from cnslib.studies import report
from cnslib.tools import report as command

RESNET = paths.resolve("data/models/classifiers/resnet")
LABELS = json.loads(paths.resolve("data/models/labels.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return published_pictures.write(tmp_path_factory.mktemp("published") / "cns_bench")


@pytest.fixture(scope="module")
def benchmark(folder) -> report.Benchmark:
    return command.exported(folder)


def shares(on: report.Benchmark, model, **more) -> list[float]:
    classifier = classifiers.user_classifier(model, name="mine", labels=on.labels, **more)
    rows = on.predict(classifier)
    right = (rows["top1"] == rows["class"]).groupby(rows["scale"]).mean() * 100
    return [round(right[0.0]), round(right[2.5]), int((rows["scale"] == 0).sum())]


RIGHT = [96, 55, 96]


def test_the_shipped_resnet_gives_the_known_shares(benchmark):
    assert shares(benchmark, str(RESNET)) == RIGHT


ALPHABET = sorted(range(8), key=lambda place: LABELS[place])


def configured(target: Path, change) -> str:
    shutil.copytree(RESNET, target)
    config = json.loads((target / "config.json").read_text())
    change(config)
    (target / "config.json").write_text(json.dumps(config))
    return str(target)


def test_a_timm_model_that_names_its_outputs_is_believed(benchmark, tmp_path):
    source = configured(tmp_path / "m", lambda config: config.update(label_names=[LABELS[i] for i in ALPHABET]))
    tensors = load_file(f"{source}/model.safetensors")
    save_file(tensors | {name: tensors[name][ALPHABET].clone() for name in ("fc.weight", "fc.bias")}, f"{source}/model.safetensors")
    assert shares(benchmark, source) == RIGHT
    assert classifiers.load("mine", source, LABELS).labels == sorted(LABELS)


class Probabilities(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, pixels):
        return self.inner(pixels).softmax(dim=1)


def test_outputs_that_are_probabilities_are_taken_so(benchmark):
    network, transform = encoders.timm_model("mine", str(RESNET), "cpu")
    plain = classifiers.user_classifier(network, name="mine", labels=LABELS)
    soft = classifiers.user_classifier(Probabilities(network), name="mine", labels=LABELS, transform=transform)
    assert soft.probabilities and not plain.probabilities
    tables = [benchmark.predict(one) for one in (plain, soft)]
    assert np.allclose(tables[0]["probability"], tables[1]["probability"], atol=1e-4)
    assert "Outputs: probabilities of 8 labels" in report.about(soft)


def test_a_network_that_normalises_by_the_batch_is_warned_about():
    network, transform = encoders.timm_model("mine", str(RESNET), "cpu")

    class Hidden(nn.Module):
        def forward(self, pixels):
            return network.train()(pixels)

    with pytest.warns(UserWarning, match="outputs for 4 of 4 pictures depend on the other pictures of the batch"):
        classifiers.user_classifier(Hidden(), name="mine", labels=LABELS, transform=transform)


def test_a_model_is_tested_at_the_size_of_its_release(tmp_path):
    change = lambda config: config["pretrained_cfg"].update(input_size=[3, 64, 64], test_input_size=[3, 80, 80], test_crop_pct=0.95)  # noqa: E731
    found = classifiers.user_classifier(configured(tmp_path / "m", change), name="mine", labels=LABELS)
    assert (found.settings["input_size"], found.settings["crop_pct"]) == ([3, 80, 80], 0.95)


def edited(folder: Path, target: Path, change) -> Path:
    """The published folder with the bytes of each picture changed; `change` maps name and bytes to these, none leaves it out."""
    for path in folder.rglob("*.jpg"):
        for name, data in change(path.relative_to(folder).as_posix(), path.read_bytes()):
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return target


def converted(data: bytes, form: str, *, turn: int = 0, **options) -> bytes:
    image = Image.open(io.BytesIO(data)) if data else Image.new("RGB", (1, 1))
    exif = Image.Exif()
    if turn:
        image, exif[0x0112] = image.transpose(Image.Transpose.ROTATE_90), turn
    image.save(buffer := io.BytesIO(), form, exif=exif, **options)
    return buffer.getvalue()


def test_pictures_that_are_upright_by_exif_alone_and_those_in_webp_are_read(folder, tmp_path):
    turned = edited(folder, tmp_path / "turned", lambda name, data: [(name, converted(data, "JPEG", turn=6, quality=95))])
    assert np.allclose(shares(command.exported(turned), str(RESNET)), RIGHT, atol=2)
    bags = lambda name, data: [(name[:-3] + "webp", converted(data, "WEBP", lossless=True)) if "_bag/" in name else (name, data)]  # noqa: E731
    assert shares(command.exported(edited(folder, tmp_path / "webp", bags)), str(RESNET)) == RIGHT


def test_files_that_are_not_read_are_counted_and_a_class_of_none_but_such_is_an_error(folder, tmp_path):
    beside = lambda name, data: [(name, data), *([(name[:-3] + "bmp", data)] if "_bag/" in name else [])]  # noqa: E731
    place = edited(folder, tmp_path / "beside", beside)
    (place / "LICENSE").write_text("CC BY 4.0")
    with pytest.warns(UserWarning, match=r"37 files were not read \(1 without an ending, 36 \.bmp\)"):
        assert shares(command.exported(place), str(RESNET)) == RIGHT
    bags = lambda name, data: [(name[:-3] + "bmp", data) if "_bag/" in name else (name, data)]  # noqa: E731
    with pytest.raises(ValueError, match=r"no file beside .*006_bag/seed_0001_scale_0000\.bmp is a picture"):
        command.exported(edited(folder, tmp_path / "none", bags))


def test_a_placeholder_in_the_place_of_a_picture_is_named(folder, tmp_path):
    bag, pixel = "006_bag/seed_0001_scale_0000.jpg", converted(b"", "PNG")
    with pytest.raises(ValueError, match=r"width and height: \(1, 1\) is not accepted"):
        command.exported(edited(folder, tmp_path / "edited", lambda name, data: [(name, pixel if name.endswith(bag) else data)]))


def test_class_folders_that_are_counted_otherwise_are_refused(folder, tmp_path):
    """Each number is that of the next class, and ImageNet's devkit counts in an order of its own."""
    later = {f"{place:03d}_{name}": f"{(place + 1) % 8:03d}_{name}" for place, name in enumerate(LABELS)}
    other = edited(folder, tmp_path / "later", lambda name, data: [("/".join(later.get(part, part) for part in name.split("/")), data)])
    with pytest.raises(ValueError, match=r"class folders: the numbers of .* are not those of the labels"):
        command.exported(other)
    with pytest.raises(ValueError, match=r"'053_fox squirrel' contradicts itself: class 53 is .*, and 'fox squirrel' is class 335"):
        official.class_of("053_fox squirrel", "mine", list(imagenet.labels()), list(imagenet.labels()))


def test_source_and_data_are_paths_of_the_working_folder(folder, tmp_path, monkeypatch, capsys):
    shutil.copytree(RESNET, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    given = ["--data", str(folder), "--folder", "there", "--params", str(paths.resolve("params.yaml"))]
    assert command.main(["mine", "--name", "mine", *given]) == 0
    assert "| accuracy at scale 0 | 96 | 0.958 |" in capsys.readouterr().out and (tmp_path / "there" / "report.md").exists()
