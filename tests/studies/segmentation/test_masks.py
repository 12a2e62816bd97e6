"""Segmentation: pixel counts and IoU by hand, the same bytes again, and what is refused."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_segmentation import SETTINGS, key
from tiny_settings import changed

from cnslib.core import paths, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.models import encoders
from cnslib.stats import accuracy
from cnslib.studies.segmentation import inputs, masks
from cnslib.world import scenes

CLASSES = ["trouser", "bag"]
TROUSER, BAG = (masks.LABELS.index(name) for name in CLASSES)


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


def test_the_same_seed_trains_the_same_network_to_the_byte(tmp_path, drawing, monkeypatch):
    """The smallest unit twice; another seed gives another answer."""
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    written = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        settings = dataclasses.replace(SETTINGS, seed=seed)
        made_from = masks.stamp("PSPNet", ["bag"], settings, drawing)
        made = {kind: units.Unit(folder / f"{kind}.parquet", made_from) for kind in ("maps", "overlaps")}
        garments = inputs.garments(["bag"], settings=settings, drawing=drawing)
        masks.train_and_answer("PSPNet", ["bag"], settings, garments, "cpu", made, folder / "checkpoints")
        written.append(made["overlaps"].path.read_bytes())
        assert not list((folder / "checkpoints").glob("*.pt"))
    assert written[0] == written[1] != written[2]
    maps = tables.read(tmp_path / "0" / "maps.parquet", tables.images)
    assert len(maps) == 1 + len(inputs.NAMES)


def test_networks_learn_the_given_classes_alone_under_their_own_outputs():
    """A bag is output 9, after the background and the eight garments before it, also where no other garment is learned."""
    pool = scenes.garments(paths.GARMENTS, "catalog", ["bag", "trouser"])
    _, target = masks.batch(pool, ("test", 1), 24)
    assert set(target.unique().tolist()) == {0, TROUSER, BAG} and (TROUSER, BAG) == (2, 9)


def test_the_encoder_starts_from_the_given_weights():
    model = masks.network("FPN", SETTINGS.encoder)
    trained = encoders.timm_model("test", SETTINGS.encoder, "cpu")[0].state_dict()
    own = model.encoder.model.state_dict()
    assert set(own) <= set(trained) and all(torch.equal(own[name], trained[name]) for name in own)


def test_effects_are_differences_of_means():
    """In grey the reference loses 0.3 and PSPNet 0.1, on average 0.2; PSPNet is ahead by 0.2 then, by 0 before, on average by 0.1.

    Two equal objects: what both show is certain.
    """
    values = {("DeepLabV3Plus", 0.0): 0.9, ("DeepLabV3Plus", 1.0): 0.6, ("PSPNet", 0.0): 0.9, ("PSPNet", 1.0): 0.8}
    rows = pd.DataFrame(
        [
            {**key("grey", seed=seed, severity=s), "model": model, "iou": value, "top1": "trouser"}
            for (model, s), value in values.items()
            for seed in (0, 1)
        ]
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
