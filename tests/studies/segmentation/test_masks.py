"""Segmentation and saliency: counts and shares by hand, known observers, the same bytes again, and what is refused."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from golden_units import agrees
from tiny_settings import changed
from torch import nn
from torchvision.transforms import Compose, Normalize, PILToTensor

from cnslib.core import kinds, paths, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.method import Bootstrap
from cnslib.models import classifiers, encoders
from cnslib.stats import accuracy
from cnslib.studies.scenarios import subjects
from cnslib.studies.segmentation import inputs, masks, saliency
from cnslib.world import scenes

CLASSES = ["trouser", "bag"]
SETTINGS = dataclasses.replace(
    read.load(paths.resolve("params.yaml"))["segmentation"],
    **{
        "encoder": "data/models/classifiers/resnet_xs",
        "steps": 2,
        "batch_size": 2,
        "images": 1,
        "severities": [0.0, 1.0],
        "bootstrap": Bootstrap(50, 0.95, 1),
    },
)
TROUSER, BAG = (masks.LABELS.index(name) for name in CLASSES)


@pytest.fixture(scope="module")
def garment() -> subjects.Subject:
    return inputs.garments(["trouser"], settings=SETTINGS)[0]


def key(scenario=UNSHIFTED, name="trouser", seed=0, severity=0.0) -> dict:
    return dict(zip(tables.KEY, (scenario, name, seed, severity), strict=True))


def counted(predicted: list, true: list) -> pd.DataFrame:
    return masks.rows(np.array([predicted], np.uint8), np.array(true, np.uint8), [key()]).assign(model="FPN")


def test_intersection_and_union_are_those_of_a_hand():
    """Of four trouser pixels two are found, one is called bag and one background; one background pixel is called trouser."""
    true = [[TROUSER, TROUSER, 0], [TROUSER, TROUSER, 0], [0, 0, 0]]
    predicted = [[TROUSER, TROUSER, TROUSER], [BAG, 0, 0], [0, 0, 0]]
    table = counted(predicted, true)
    found = table.set_index("label")[["intersection", "union"]].apply(tuple, axis=1).to_dict()
    assert found == {"background": (4, 6), "trouser": (2, 5), "bag": (0, 1)}
    image = masks.images(table, settings=SETTINGS).iloc[0]
    assert image["iou"] == 2 / 5 and image["foreground"] == 3 / 5 and image["top1"] == "background"


def test_a_perfect_map_has_iou_one_and_is_no_failure():
    true = [[TROUSER, 0], [0, 0]]
    image = masks.images(counted(true, true), settings=SETTINGS).iloc[0]
    assert image["iou"] == image["foreground"] == 1 and image["top1"] == "trouser"


def test_miou_divides_sums_and_not_images():
    """Trousers: 1 of 1 and 0 of 9 pixels, so 1/10 and not 1/2; the background 8 of 9 and 0 of 9; their mean."""
    rows = [("trouser", 0, 1, 1), ("background", 0, 8, 9), ("trouser", 1, 0, 9), ("background", 1, 0, 9)]
    counts = [
        {**key(scenario, seed=seed, severity=severity), "model": "FPN", "label": label, "intersection": hit, "union": union}
        for (label, seed, hit, union), (scenario, severity) in itertools.product(rows, [(UNSHIFTED, 0.0), ("grey", 1.0)])
    ]
    counts = pd.DataFrame(counts)
    found = accuracy.outcomes(masks.images(counts, settings=SETTINGS))
    miou = masks.table(masks.miou(found, counts, settings=SETTINGS.bootstrap))
    assert miou["estimate"].tolist() == pytest.approx([(1 / 10 + 8 / 18) / 2] * len(miou))


def test_the_share_is_that_of_a_hand_and_of_the_area_where_a_map_points_nowhere():
    mask = torch.tensor([[1.0, 0.5], [0.0, 0.0]])
    maps = torch.tensor([[[3.0, 2.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert saliency.share(maps, mask).tolist() == pytest.approx([(3 + 1) / 8, 1.5 / 4])


def observer(weights: torch.Tensor) -> classifiers.Classifier:
    """A linear classifier of two labels: its gradient is its weights."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(weights.numel(), 2, bias=False))
    network[1].weight.data = torch.stack([weights.flatten(), -weights.flatten()])
    transform = Compose([PILToTensor(), lambda picture: picture.float() / 255, Normalize([0.5] * 3, [0.25] * 3)])
    return classifiers.Classifier("observer", "test", CLASSES, network.requires_grad_(False), transform, {}, 0, "cpu")


def test_who_looks_at_the_object_alone_has_share_one_and_who_looks_elsewhere_has_none(garment):
    whole = torch.from_numpy((garment.mask == 1).astype(np.float32))
    for weights, expected in ((whole, 1.0), (torch.from_numpy((garment.mask == 0).astype(np.float32)), 0.0)):
        rows = saliency.ask(observer(weights.expand(3, -1, -1).contiguous()), garment, seed=1)
        assert len(rows) == 1 + len(inputs.NAMES) and set(rows["method"]) == {saliency.GRADIENT}
        assert rows["share"].tolist() == pytest.approx([expected] * len(rows))


def test_who_looks_everywhere_alike_has_the_share_of_the_area(garment):
    rows = saliency.ask(observer(torch.ones(3, 64, 64)), garment, seed=1)
    assert rows["share"].tolist() == pytest.approx(rows["area"].tolist())
    assert rows["area"].iloc[0] == pytest.approx(garment.mask.mean(), abs=1 / 255)


def test_states_begin_with_the_image_itself_and_every_scenario_changes_it(garment):
    pictures = inputs.pictures(garment, [0.0, 1.0], seed=1)
    assert inputs.keys(garment, [0.0, 1.0])[0] == key()
    assert np.array_equal(pictures[0], np.round(garment.image * 255).astype(np.uint8))
    assert all((picture != pictures[0]).any() for picture in pictures[1:])


def test_the_garments_are_those_of_the_scenarios_and_the_random_background_is_their_other_picture(garment):
    pool = scenes.garments(paths.GARMENTS, "heldout")
    (same,) = subjects.garments(pool, "heldout", ["trouser"], count=1, seed=1)
    assert np.array_equal(garment.image, same.image) and np.array_equal(garment.other, same.other)
    place = inputs.states([0.0, 1.0]).index(("random background", 1.0))
    made = inputs.pictures(garment, [0.0, 1.0], seed=1)[place]
    assert np.array_equal(made[garment.mask == 0], np.round(garment.other * 255).astype(np.uint8)[garment.mask == 0])


def test_the_same_seed_trains_the_same_network_to_the_byte(tmp_path):
    """The smallest unit twice; another seed gives another answer."""
    written = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        settings = dataclasses.replace(SETTINGS, seed=seed)
        made_from = masks.stamp("PSPNet", ["bag"], settings)
        made = {kind: units.Unit(folder / f"{kind}.parquet", made_from) for kind in ("maps", "overlaps")}
        masks.train_and_answer("PSPNet", ["bag"], settings, "cpu", made, folder / "checkpoints")
        written.append(made["overlaps"].path.read_bytes())
        assert not list((folder / "checkpoints").glob("*.pt"))
    assert written[0] == written[1] != written[2]
    maps = tables.read(tmp_path / "0" / "maps.parquet", tables.images)
    assert len(maps) == 1 + len(inputs.NAMES)


def test_the_encoder_starts_from_the_given_weights():
    model = masks.network("FPN", SETTINGS.encoder)
    trained = encoders.timm_model("test", SETTINGS.encoder, "cpu")[0].state_dict()
    own = model.encoder.model.state_dict()
    assert set(own) <= set(trained) and all(torch.equal(own[name], trained[name]) for name in own)


def test_effects_are_differences_of_means():
    """In grey the reference loses 0.3 and PSPNet 0.1, on average 0.2; PSPNet is ahead by 0.2 then, by 0 before, on average by 0.1."""
    values = {("DeepLabV3Plus", 0.0): 0.9, ("DeepLabV3Plus", 1.0): 0.6, ("PSPNet", 0.0): 0.9, ("PSPNet", 1.0): 0.8}
    rows = pd.DataFrame(
        [{**key("grey", severity=s), "model": model, "iou": value, "top1": "trouser"} for (model, s), value in values.items()]
    )
    found = accuracy.outcomes(rows)
    shares = masks.means(found, rows, "iou", settings=SETTINGS.bootstrap)
    table = masks.table3(masks.effects(shares, settings=SETTINGS.bootstrap)).set_index("name")
    assert table["ours"].to_dict() == pytest.approx({"grey": -0.2, "PSPNet": 0.1})
    assert table["published"].to_dict() == {"grey": -0.01929, "PSPNet": -0.045}
    assert table["verdict"].to_dict() == {"grey": "same direction", "PSPNet": "opposite direction"}


def test_a_perfect_order_correlates_fully():
    values = np.tile(np.arange(8.0), (SETTINGS.bootstrap.resamples + 1, 1))
    found = masks.correlation(values, -values, settings=SETTINGS.bootstrap)
    assert found == pytest.approx({"n": 8, "estimate": -1, "low": -1, "high": -1})


@pytest.mark.parametrize(
    ("maps", "mask", "message"),
    [
        (torch.ones(1, 4, 4), torch.ones(3, 4), r"mask of shape \(3, 4\) for maps of \(4, 4\)"),
        (torch.ones(1, 4, 4), torch.zeros(4, 4), "mask is empty; accepted: at least one pixel"),
        (-torch.ones(1, 4, 4), torch.ones(4, 4), "negative or infinite values; accepted: 0 or more"),
    ],
)
def test_a_mask_that_does_not_fit_its_map_is_refused(maps, mask, message):
    with pytest.raises(ValueError, match=message):
        saliency.share(maps, mask)


def test_a_mask_without_an_object_or_of_another_size_has_no_iou():
    with pytest.raises(ValueError, match="mask of 'bag' exceeds one half nowhere"):
        masks.truth(np.full((4, 4), 0.5), "bag")
    with pytest.raises(ValueError, match=r"maps of shape \(2, 2\) for a mask of \(3, 2\)"):
        masks.rows(np.zeros((1, 2, 2), np.uint8), np.zeros((3, 2), np.uint8), [key()])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"networks": ["UNet"]}, r"segmentation\.networks: \['UNet'\].*DeepLabV3Plus, FPN, PSPNet"),
        ({"networks": ["FPN"]}, r"segmentation\.networks.*DeepLabV3Plus first"),
        ({"severities": [0.0, 0.5]}, r"segmentation\.severities.*from 0.0 to 1.0"),
        ({"overlap": 1.5}, r"segmentation\.overlap: 1.5"),
        ({"images": 0}, r"segmentation\.images: 0"),
    ],
)
def test_one_clear_error_names_what_the_section_may_hold(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **changes)


def test_more_photographs_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"segmentation\.photographs: 999.*at most 88"):
        inputs.photographs(paths.PHOTOS, settings=dataclasses.replace(SETTINGS, photographs=999))


def test_the_tiny_unit_is_the_golden_one(garment):
    classifier = observer(torch.linspace(0, 1, 3 * 64 * 64).view(3, 64, 64))
    agrees(kinds.SALIENCY, saliency.ask(classifier, garment, seed=1), within=1e-3)
