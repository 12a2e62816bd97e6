import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from golden_units import difference
from PIL import Image
from tiny_garments import garments
from tiny_scenarios import CLASSES, LABELS, OUTLINED, RESAMPLED
from tiny_settings import changed
from torch import nn
from torchvision.transforms import Compose, Normalize, PILToTensor

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.data import imagenet
from cnslib.models import classifiers
from cnslib.stats import accuracy
from cnslib.studies.scenarios import experiments, saliency, segmentation, subjects
from cnslib.studies.scenarios.subjects import ENDS
from cnslib.world import scenes


def test_ex1_evaluates_every_scenario_severity_and_object_once(experiment, settings, tmp_path):
    found = experiments.garments(experiment, folder=tmp_path / "garments")
    graded = [(name, scale) for name in (*subjects.NAMES, subjects.SUMMED) for scale in (0.5, 1.0)]
    assert found.groupby(["shift", "scale"]).size().to_dict() == {(UNSHIFTED, 0.0): 4} | dict.fromkeys(graded, 4)
    judge = classifiers.load("tiny", settings.backbones["tiny"], LABELS)
    own = subjects.garments(garments(), "heldout", CLASSES, count=2, seed=1)[1]
    logits = judge.logits([subjects.shown(own, "red", 1.0, seed=1)])
    row = found.query("shift == 'red' and scale == 1 and `class` == 'sneaker' and seed == 1")
    assert row["top1"].tolist() == [LABELS[int(logits.argmax())]]
    assert not difference(recipes.EX1, found)
    how = {"shown": [], "settings": settings, "device": "cpu", "folder": tmp_path / "cut_out"}
    cut = experiments.cut_out(settings.backbones, LABELS, experiment.garments, **how)
    exact, black = cut.query("shift == '0'"), found.query("shift == 'segmented' and scale == 1")
    assert not difference(recipes.CUT_OUT, cut)
    assert cut.groupby("shift").size().to_dict() == {"-0.1": 4, "0": 4, "0.1": 4} and exact["top1"].tolist() == black["top1"].tolist()


def test_ex2_trains_each_backbone_within_each_scenario_and_a_training_repeats_to_the_bit(experiment, tmp_path):
    found = experiments.within(experiment, folder=tmp_path / "within", checkpoints=tmp_path)
    counts = found.groupby(["shift", "steps"]).size().to_dict()
    assert counts == dict.fromkeys(itertools.product(experiments.TRAINED, (1, 2)), 4)
    made = [experiments.examples(experiment, name, "catalog", 2)[1] for name in experiments.TRAINED]
    assert not difference(recipes.EX2, np.concatenate(made))  # the training itself is rounded by every processor in its own way
    before = (tmp_path / "within" / "tiny_grey.parquet").read_bytes()
    (tmp_path / "within" / "tiny_grey.parquet").unlink()
    experiments.within(experiment, folder=tmp_path / "within", checkpoints=tmp_path)
    assert (tmp_path / "within" / "tiny_grey.parquet").read_bytes() == before and not [*tmp_path.glob("*.pt"), *tmp_path.glob("*.json")]


TROUSER, BAG = (segmentation.LABELS.index(name) for name in ("trouser", "bag"))


def key(scenario=UNSHIFTED, name="trouser", seed=0, severity=0.0) -> dict:
    return dict(zip(tables.KEY, (scenario, name, seed, severity), strict=True))


PLACES = (44, 46)  # two of XIMAGENET-12's classes


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """XIMAGENET-12's layout: pictures of unequal size, masks with label numbers on the left third, and a picture without a mask."""
    monkeypatch.setattr(subjects, "SIDE", 64)
    noise = np.random.default_rng(0)
    for place in PLACES:
        wnid = imagenet.wnids()[place]
        for part in ("image", "masks"):
            (tmp_path / "tree" / part / wnid).mkdir(parents=True)
        for number, (width, height) in enumerate([(90, 70), (60, 80), (64, 64), (70, 90)]):
            picture = noise.integers(0, 256, (height, width, 3), dtype=np.uint8)
            Image.fromarray(picture).save(tmp_path / "tree" / "image" / wnid / f"{wnid}_{number}.JPEG")
            mask = Image.fromarray(np.where(np.arange(width) < width / 3, 7, 0)[None].repeat(height, 0).astype(np.uint8), mode="P")
            if number:
                mask.save(tmp_path / "tree" / "masks" / wnid / f"{wnid}_{number}.png")
    return tmp_path / "tree"


def test_the_published_tree_goes_through_both_experiments_and_the_segmentation(experiment, tree, tmp_path):
    """Two pictures a class to learn from and the third held out, whose object is the left third."""
    classes = [imagenet.labels()[place] for place in PLACES]
    settings = dataclasses.replace(experiment.settings, tree=str(tree), images=1)
    own = dataclasses.replace(experiment, settings=settings, classes=classes, labels=[*classes, *LABELS[2:]])
    (first, second), before = own.garments(), own.digest
    assert (first.label, first.seed, first.drawn) == (classes[0], 2, None) and np.array_equal(first.other, second.image)
    assert set(np.unique(first.mask)) == {0, 1} and first.mask[:, 0].all() and not first.mask[:, 30:].any()
    shown = experiments.garments(own, folder=tmp_path / "ex1")
    assert set(shown["shift"]) == {*experiments.OF_PHOTOGRAPHS} and set(shown["class"]) == {*classes}
    name = experiments.train(own, tmp_path, ("tiny", "grey"))
    assert name["steps"].tolist() == [1, 1, 2, 2] and name["class"].tolist() == classes * 2
    outlined = dataclasses.replace(OUTLINED, networks=["DeepLabV3Plus"], runs=1, images=1)
    files = segmentation.run(own, settings=outlined, folder=tmp_path / "maps", checkpoints=tmp_path / "checkpoints")
    counts = tables.read(files["DeepLabV3Plus 1"]["overlaps"], segmentation.schema)
    assert set(counts["class"]) == {*classes} and set(counts["label"]) <= {"background", *classes}
    Image.fromarray(np.zeros((90, 70), np.uint8)).save(next((tree / "masks" / imagenet.wnids()[44]).glob("*_3.png")))
    assert own.digest != before
    with pytest.raises(ValueError, match=r"scenarios\.tree: .*_3\.png: .* accepted: \(90, 70\) as its picture, with an object"):
        own.garments()
    short = dataclasses.replace(own, settings=dataclasses.replace(settings, images=2))
    with pytest.raises(ValueError, match=r"scenarios\.tree: .*pictures with a mask in .* from number 2 on: 1 is not accepted; accepted: 2"):
        short.garments()


def test_intersection_and_union_are_those_of_a_hand():
    """Of four trouser pixels two are hit, one is called bag and one background; one background pixel is called trouser."""
    true = np.array([[TROUSER, TROUSER, 0], [TROUSER, TROUSER, 0], [0, 0, 0]], np.uint8)
    predicted = np.array([[[TROUSER, TROUSER, TROUSER], [BAG, 0, 0], [0, 0, 0]]], np.uint8)
    for maps, counts, iou, foreground in (
        (predicted, {"background": (4, 6), "trouser": (2, 5), "bag": (0, 1)}, 2 / 5, 3 / 5),
        (true[None], {"background": (5, 5), "trouser": (4, 4)}, 1, 1),
    ):
        table = segmentation.overlaps(maps, true, pd.DataFrame([key()])).assign(model="FPN")
        assert table.set_index("label")[["intersection", "union"]].apply(tuple, axis=1).to_dict() == counts
        image = segmentation.per_image(table, overlap=0.5).iloc[0]
        assert (image["iou"], image["foreground"]) == (iou, foreground)
        assert image["top1"] == ("trouser" if iou >= 0.5 else "background")


def test_miou_divides_sums_and_not_images():
    """Trousers: 1 of 1 and 0 of 9 pixels, so 1/10 and not 1/2; the background 8 of 9 and 0 of 9; their mean."""
    rows = [("trouser", 0, 1, 1), ("background", 0, 8, 9), ("trouser", 1, 0, 9), ("background", 1, 0, 9)]
    counts = [
        {**key(scenario, seed=seed, severity=severity), "model": "FPN", "label": label, "intersection": hit, "union": union}
        for (label, seed, hit, union), (scenario, severity) in itertools.product(rows, [(UNSHIFTED, 0.0), ("grey", 1.0)])
    ]
    counts = pd.DataFrame(counts)
    found = accuracy.wrong_predictions(segmentation.per_image(counts, overlap=0.5))
    miou = segmentation.table(segmentation.miou(found, counts, settings=RESAMPLED))
    assert miou["estimate"].tolist() == pytest.approx([(1 / 10 + 8 / 18) / 2] * len(miou))


def test_the_same_seed_trains_the_same_network_to_the_byte(experiment, tmp_path, monkeypatch):
    """The smallest unit twice; another seed gives another map, and so does another run, of the same garments."""
    monkeypatch.setattr(subjects, "NAMES", ("grey", subjects.DRAWN))
    own = dataclasses.replace(experiment, settings=dataclasses.replace(experiment.settings, images=1), classes=["sneaker"])
    found, written, stamps = own.garments(), [], []
    for number, (seed, run) in enumerate(((1, 1), (1, 1), (2, 1), (1, 2))):
        outlined = dataclasses.replace(OUTLINED, seed=seed)
        stamps.append(segmentation.stamp("PSPNet", run, own, outlined))
        made = [units.Unit(tmp_path / str(number) / f"{kind}.parquet", stamps[-1]) for kind in ("maps", "overlaps")]
        segmentation.train_and_segment("PSPNet", run, own, outlined, found, made, tmp_path / "checkpoints")
        written.append(made[1].path.read_bytes())
    assert written[0] == written[1] != written[2] and stamps[3] != stamps[0] == stamps[1]
    assert not list((tmp_path / "checkpoints").glob("*.pt"))
    assert len(tables.read(tmp_path / "0" / "maps.parquet", tables.images)) == 1 + 2


TRAINED = {name: [f"{name} 1", f"{name} 2"] for name in ("DeepLabV3Plus", "PSPNet")}


@pytest.mark.parametrize("luck", [0.0, 0.1])
def test_effects_are_differences_of_means_and_the_luck_of_trainings_widens_those_of_networks_alone(luck):
    """Grey takes 0.3 and 0.1, on average 0.2; PSPNet is ahead by 0.2 in grey, by 0 before, on average by 0.1.

    Both trainings of PSPNet are off by the luck, to either side: a variance of 0.02, of the mean 0.01, and one degree of freedom. Two
    equal objects: what both show is certain.
    """
    assert segmentation.trainings(changed(OUTLINED, networks=list(TRAINED), runs=2)) == TRAINED
    values = {("DeepLabV3Plus", 0.0): 0.9, ("DeepLabV3Plus", 1.0): 0.6, ("PSPNet", 0.0): 0.9, ("PSPNet", 1.0): 0.8}
    off = {"PSPNet 1": luck, "PSPNet 2": -luck}
    rows = [
        {**key("grey", seed=seed, severity=s), "model": run, "iou": value + off.get(run, 0.0), "top1": "trouser"}
        for (model, s), value in values.items()
        for run, seed in itertools.product(TRAINED[model], (0, 1))
    ]
    rows = pd.DataFrame(rows)
    measured = segmentation.means(accuracy.wrong_predictions(rows), rows, "iou", settings=RESAMPLED)
    table = segmentation.effects(measured, TRAINED, freedom=9).set_index("name")
    half = scipy.stats.t.ppf(0.975, 1) * luck
    assert table.loc["PSPNet", ["estimate", "low", "high"]].tolist() == pytest.approx([0.1, 0.1 - half, 0.1 + half])
    assert table.loc["grey", ["estimate", "low", "high"]].tolist() == pytest.approx([-0.2] * 3)
    assert table["trainings"].to_dict() == {"grey": 4, "PSPNet": 2}
    reached = accuracy.interval(segmentation.at_ends(measured))["estimate"].tolist()
    assert reached == pytest.approx([0.75, 0.75, 0.85 + luck, 0.85 - luck])


def observer(weights: torch.Tensor, labels: list[str] = CLASSES) -> classifiers.Classifier:
    network = nn.Sequential(nn.Flatten(), nn.Linear(weights.numel(), 2, bias=False))
    network[1].weight.data = torch.stack([weights.flatten(), -weights.flatten()])
    transform = Compose([PILToTensor(), lambda picture: picture.float() / 255, Normalize([0.5] * 3, [0.25] * 3)])
    return classifiers.Classifier("observer", "test", labels, network.requires_grad_(False), transform, {}, 0, "cpu")


def test_who_looks_at_the_object_alone_has_share_one_elsewhere_none_and_everywhere_the_area(found):
    garment = dataclasses.replace(found[0], drawn=found[1].image)
    for weights, expected in ((garment.mask == 1, 1.0), (garment.mask == 0, 0.0), (np.ones((64, 64)), None)):
        planes = torch.from_numpy(weights.astype(np.float32)).expand(3, -1, -1).contiguous()
        rows = saliency.evaluate(observer(planes), garment, seed=1)
        assert len(rows) == len(subjects.keys(garment, ENDS)) and set(rows["method"]) == {saliency.GRADIENT}
        assert rows["share"].tolist() == pytest.approx(rows["area"].tolist() if expected is None else [expected] * len(rows))
    assert rows["area"].iloc[0] == pytest.approx(garment.mask.mean(), abs=1 / 255)


def test_the_tiny_unit_of_saliency_is_the_golden_one():
    (own,) = subjects.garments(scenes.garments(paths.GARMENTS, "heldout"), "heldout", ["trouser"], count=1, seed=1)
    judge = observer(torch.linspace(0, 1, 3 * 64 * 64).view(3, 64, 64), ["trouser", "bag"])
    rows = saliency.evaluate(judge, dataclasses.replace(own, drawn=own.other[::-1].copy()), seed=1)
    assert not difference(recipes.SALIENCY, rows, within=1e-3)
