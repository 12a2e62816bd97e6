"""What others bring to `cns report`, right and wrong: no number is silently wrong. Right is 96 % at scale 0 and 55 % at 2.5, n = 96."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import published_pictures
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification, ViTImageProcessor

from cnslib.core import paths
from cnslib.data import answers, imagenet, official
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
    """Accuracy in percent at scales 0 and 2.5, and n."""
    classifier = classifiers.own_classifier(model, name="mine", labels=on.labels, **more)
    rows = on.predict(classifier)
    right = (rows["top1"] == rows["class"]).groupby(rows["scale"]).mean() * 100
    return [round(right[0.0]), round(right[2.5]), int((rows["scale"] == 0).sum())]


RIGHT = [96, 55, 96]


def copied(target: Path, change) -> str:
    """The shipped resnet with its tensors changed."""
    shutil.copytree(RESNET, target)
    tensors = change(load_file(target / "model.safetensors"))
    save_file(tensors, target / "model.safetensors")
    return str(target)


def test_the_shipped_resnet_gives_the_known_shares(benchmark):
    assert shares(benchmark, str(RESNET)) == RIGHT


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod."])
def test_a_wrappers_prefix_is_cut(benchmark, tmp_path, prefix):
    assert shares(benchmark, copied(tmp_path / "m", lambda ts: {prefix + k: v for k, v in ts.items()})) == RIGHT


def missing(tensors):
    return {name: value for name, value in tensors.items() if name != "layer2.0.conv1.weight"}


def broken(tensors):
    tensors["layer2.0.conv1.weight"].view(-1)[3] = float("nan")
    return tensors


FAULTS = {
    "missing": (missing, r"model\.safetensors does not fit the model: \d+ tensors match, 1 missing \(layer2\.0\.conv1\.weight\)"),
    "extra": (lambda ts: ts | {"extra": torch.zeros(2)}, r"0 missing, 1 unexpected \(extra\)"),
    "renamed": (lambda ts: {name.replace("fc.", "head."): value for name, value in ts.items()}, r"2 missing .*2 unexpected \(head"),
    "outputs": (lambda ts: ts | {"fc.weight": ts["fc.weight"][:5].clone(), "fc.bias": ts["fc.bias"][:5].clone()}, "2 of another shape"),
    "not a number": (broken, r"1 tensors hold NaN or infinity, first layer2\.0\.conv1\.weight"),
}


@pytest.mark.parametrize("loader", ["timm", "transformers"])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_loads_in_part(tmp_path, loader, fault):
    change, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message if loader == "timm" else "mine: .*accepted") as raised:
        if loader == "timm":
            classifiers.own_classifier(copied(tmp_path / "m", change), name="mine", labels=LABELS)
        else:
            classifiers.own_classifier(hugging_face(tmp_path / "m", change), name="mine", labels=LABELS)
    assert "\n" not in str(raised.value)


def to_hugging_face(name: str) -> str:
    """The name that transformers' ResNet gives a tensor of timm's."""
    kinds = {"conv1": "layer.0.convolution", "bn1": "layer.0.normalization", "conv2": "layer.1.convolution", "bn2": "layer.1.normalization"}
    parts = name.split(".")
    if parts[0] == "fc":
        return f"classifier.1.{parts[1]}"
    if parts[0] in ("conv1", "bn1"):
        return f"resnet.embedder.embedder.{'convolution' if parts[0] == 'conv1' else 'normalization'}.{parts[1]}"
    stage, block, kind, *rest = parts
    front = f"resnet.encoder.stages.{int(stage[5:]) - 1}.layers.{block}"
    if kind == "downsample":
        return f"{front}.shortcut.{'convolution' if rest[0] == '0' else 'normalization'}.{rest[1]}"
    return f"{front}.{kinds[kind]}.{rest[0]}"


def hugging_face(target: Path, change=lambda tensors: tensors, *, names: list[str] | None = None, order=None, dtype=torch.float32) -> str:
    """The shipped resnet as a directory of transformers; `change` acts on timm's tensors, `order` puts its outputs in another one."""
    stored = load_file(RESNET / "model.safetensors")
    tensors = {name: value.float() if value.is_floating_point() else value for name, value in stored.items()}
    if order:
        tensors |= {name: tensors[name][order].clone() for name in ("fc.weight", "fc.bias")}
    sizes = {"embedding_size": 64, "hidden_sizes": [32, 64, 128, 192], "depths": [2, 2, 2, 2], "layer_type": "basic"}
    config = ResNetConfig(**sizes, num_labels=8, **({"id2label": dict(enumerate(names))} if names else {}))
    model = ResNetForImageClassification(config)
    model.load_state_dict({to_hugging_face(name): value for name, value in tensors.items()})
    model.to(dtype).save_pretrained(target)
    ViTImageProcessor(size={"height": 64, "width": 64}, image_mean=[0.5] * 3, image_std=[0.25] * 3).save_pretrained(target)
    stored = load_file(target / "model.safetensors")
    known = {to_hugging_face(name): name for name in tensors}
    changed = change({known[name]: value for name, value in stored.items()})
    hidden = {name: to_hugging_face(name) if name in tensors else name for name in changed}
    save_file({hidden[name]: value for name, value in changed.items()}, target / "model.safetensors", {"format": "pt"})
    return f"transformers:{target}"


ALPHABET = sorted(range(8), key=lambda place: LABELS[place])


def test_transformers_directory_gives_the_same_answers_also_in_half_precision_and_in_its_own_order(benchmark, tmp_path):
    assert shares(benchmark, hugging_face(tmp_path / "plain")) == RIGHT
    halved = shares(benchmark, hugging_face(tmp_path / "half", dtype=torch.bfloat16))
    assert np.allclose(halved, RIGHT, atol=2)
    assert shares(benchmark, hugging_face(tmp_path / "own", order=ALPHABET, names=[LABELS[i] for i in ALPHABET])) == RIGHT
    with pytest.raises(ValueError, match=r"no output is called 't-shirt', names that the model gives itself: .*--labels"):
        shares(benchmark, hugging_face(tmp_path / "others", names=[f"thing {i}" for i in range(8)]))
    assert shares(benchmark, f"transformers:{tmp_path / 'others'}", outputs=LABELS) == RIGHT


def configured(target: Path, change) -> str:
    """The shipped resnet with another config.json."""
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
    plain = classifiers.own_classifier(network, name="mine", labels=LABELS)
    soft = classifiers.own_classifier(Probabilities(network), name="mine", labels=LABELS, transform=transform)
    assert soft.probabilities and not plain.probabilities
    tables = [benchmark.predict(one) for one in (plain, soft)]
    assert np.allclose(tables[0]["probability"], tables[1]["probability"], atol=1e-4)
    assert "Outputs: probabilities of 8 labels" in report.about(soft)


def test_a_network_that_normalises_by_the_batch_is_warned_about():
    network, transform = encoders.timm_model("mine", str(RESNET), "cpu")

    class Hidden(nn.Module):
        """Keeps its network where `eval()` does not find it."""

        def forward(self, pixels):
            return network.train()(pixels)

    with pytest.warns(UserWarning, match="outputs for 4 of 4 pictures depend on the other pictures of the batch"):
        classifiers.own_classifier(Hidden(), name="mine", labels=LABELS, transform=transform)


def grey(config):
    config["model_args"]["in_chans"] = 1
    config["pretrained_cfg"] |= {"input_size": [1, 64, 64], "mean": [0.5], "std": [0.25]}


def test_a_model_of_grey_pictures_and_a_device_that_is_not_there_are_one_line(tmp_path):
    source = configured(tmp_path / "grey", grey)
    tensors = load_file(f"{source}/model.safetensors")
    save_file(tensors | {"conv1.weight": tensors["conv1.weight"][:, :1].clone()}, f"{source}/model.safetensors")
    with pytest.raises(ValueError, match="mine, channels of the input: 1 is not accepted; accepted: 3"):
        classifiers.own_classifier(source, name="mine", labels=LABELS)
    with pytest.raises(ValueError, match=r"device: 'cuda:77' is not accepted .*; accepted: cpu"):
        classifiers.own_classifier(source, name="mine", labels=LABELS, device="cuda:77")


def test_a_model_is_tested_at_the_size_of_its_release(tmp_path):
    """timm's own validation of resnet50.a1_in1k is at 288 px without a margin, its training at 224."""
    change = lambda config: config["pretrained_cfg"].update(input_size=[3, 64, 64], test_input_size=[3, 80, 80], test_crop_pct=0.95)  # noqa: E731
    found = classifiers.own_classifier(configured(tmp_path / "m", change), name="mine", labels=LABELS)
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
    """A picture in another format, turned by 90 degrees and marked as to be turned back."""
    image = Image.open(io.BytesIO(data))
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


def at_first_bag(change):
    """Changes the first picture of a bag."""
    return lambda name, data: [(name, change(data) if name.endswith("006_bag/seed_0001_scale_0000.jpg") else data)]


def placeholder(data: bytes) -> bytes:
    Image.new("RGB", (1, 1)).save(buffer := io.BytesIO(), "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [(placeholder, r"width and height: \(1, 1\) is not accepted"), (lambda data: data[:30], r"seed_0001_scale_0000\.jpg is not a picture")],
)
def test_a_placeholder_and_a_cut_picture_are_named(folder, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        command.exported(edited(folder, tmp_path / "edited", at_first_bag(change)))


def test_class_folders_that_are_counted_otherwise_are_refused(folder, tmp_path):
    """Each number is that of the next class, and ImageNet's devkit counts in an order of its own."""
    later = {f"{place:03d}_{name}": f"{(place + 1) % 8:03d}_{name}" for place, name in enumerate(LABELS)}
    other = edited(folder, tmp_path / "later", lambda name, data: [("/".join(later.get(part, part) for part in name.split("/")), data)])
    with pytest.raises(ValueError, match=r"class folders: the numbers of .* are not those of the labels"):
        command.exported(other)
    with pytest.raises(ValueError, match=r"'053_fox squirrel' contradicts itself: class 53 is .*, and 'fox squirrel' is class 335"):
        official.class_of("053_fox squirrel", "mine", list(imagenet.labels()), list(imagenet.labels()))


def test_answers_that_contradict_their_own_column_are_refused(folder, benchmark, tmp_path):
    told = benchmark.predict(classifiers.own_classifier(str(RESNET), name="other", labels=LABELS))
    told = told.assign(top1=[LABELS[(LABELS.index(name) + 1) % 8] for name in told["top1"]])
    answers.export_answers(told, benchmark.kept, tmp_path / "results.zip", labels=LABELS)
    with zipfile.ZipFile(tmp_path / "results.zip") as archive:
        files = {name: pd.read_csv(archive.open(name), index_col=0, dtype={"seed": str}) for name in archive.namelist()}
    for name, rows in files.items():
        right = ((rows["pred_class"] - 1) % 8) == rows["gt_class"]  # what stood there before the classes were counted otherwise
        (tmp_path / name).write_text(rows.assign(other=right).to_csv())
    with pytest.raises(ValueError, match="other says whether pred_class is gt_class"):
        command.exported(folder, results=archived(tmp_path))


def archived(folder: Path) -> Path:
    """The csv files of a folder in one of their own."""
    (folder / "results").mkdir()
    for path in folder.glob("*.csv"):
        path.rename(folder / "results" / path.name)
    return folder / "results"


def test_exported_answers_join_the_exported_pictures(folder, benchmark, tmp_path):
    told = benchmark.predict(classifiers.own_classifier(str(RESNET), name="other", labels=LABELS))
    answers.export_answers(told, benchmark.kept, tmp_path / "results", labels=LABELS, form="jpg")
    rows = pd.concat([pd.read_csv(path) for path in (tmp_path / "results").iterdir()])
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.jpg")}
    assert names == {"/".join(row) for row in rows[["shift", "class_str", "img_name"]].itertuples(index=False)}


@pytest.mark.parametrize("name", ["../../../x", "a" * 288, ".hidden", "a/b"])
def test_a_name_that_is_no_file_name_is_refused_before_the_first_picture(name, capsys):
    assert command.main([str(RESNET), "--name", name]) == 2
    assert "accepted: a name of at most 100 printable characters" in capsys.readouterr().err


def test_source_and_data_are_paths_of_the_working_folder(folder, tmp_path, monkeypatch, capsys):
    shutil.copytree(RESNET, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    given = ["--data", str(folder), "--folder", "there", "--params", str(paths.resolve("params.yaml"))]
    assert command.main(["mine", "--name", "mine", *given]) == 0
    assert "| accuracy at scale 0 | 96 | 0.958 |" in capsys.readouterr().out and (tmp_path / "there" / "report.md").exists()
