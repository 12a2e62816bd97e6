"""Segmentation: pixel counts and IoU by hand, the same bytes again, and what is refused."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from tiny_segmentation import SETTINGS, key
from tiny_settings import changed

from cnslib.core import paths, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.models import encoders
from cnslib.stats import accuracy
from cnslib.stats.accuracy import Shares
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


@pytest.mark.slow
def test_the_same_seed_trains_the_same_network_to_the_byte(tmp_path, drawing):
    """The smallest unit twice; another seed gives another answer, and so does another run, about the same garments."""
    written, stamps = [], []
    for number, (seed, run) in enumerate(((1, 1), (1, 1), (2, 1), (1, 2))):
        folder = tmp_path / str(number)
        settings = dataclasses.replace(SETTINGS, seed=seed)
        stamps.append(masks.stamp("PSPNet", run, ["bag"], settings, drawing))
        made = {kind: units.Unit(folder / f"{kind}.parquet", stamps[-1]) for kind in ("maps", "overlaps")}
        garments = inputs.garments(["bag"], settings=settings, drawing=drawing)
        masks.train_and_answer("PSPNet", run, ["bag"], settings, garments, "cpu", made, folder / "checkpoints")
        written.append(made["overlaps"].path.read_bytes())
        assert not list((folder / "checkpoints").glob("*.pt"))
    assert written[0] == written[1] != written[2]
    one, other = (tables.read(tmp_path / number / "overlaps.parquet", masks.overlaps) for number in ("0", "3"))
    assert set(one["model"]) == {"PSPNet 1"} and set(other["model"]) == {"PSPNet 2"}
    assert other["intersection"].tolist() != one["intersection"].tolist() and stamps[3] != stamps[0] == stamps[1]
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


TRAINED = {name: [f"{name} 1", f"{name} 2"] for name in ("DeepLabV3Plus", "PSPNet")}


def measured(luck: float) -> Shares:
    """In grey the reference loses 0.3 and PSPNet 0.1; both trainings of PSPNet are off by the luck, to either side.

    Two equal objects: what both show is certain.
    """
    values = {("DeepLabV3Plus", 0.0): 0.9, ("DeepLabV3Plus", 1.0): 0.6, ("PSPNet", 0.0): 0.9, ("PSPNet", 1.0): 0.8}
    off = {"PSPNet 1": luck, "PSPNet 2": -luck}
    rows = pd.DataFrame(
        [
            {**key("grey", seed=seed, severity=s), "model": run, "iou": value + off.get(run, 0.0), "top1": "trouser"}
            for (model, s), value in values.items()
            for run in TRAINED[model]
            for seed in (0, 1)
        ]
    )
    return masks.means(accuracy.outcomes(rows), rows, "iou", settings=SETTINGS.bootstrap)


def test_effects_are_differences_of_means():
    """Grey takes 0.3 and 0.1, on average 0.2; PSPNet is ahead by 0.2 in grey, by 0 before, on average by 0.1."""
    table = masks.table3(masks.effects(measured(0.0), TRAINED, freedom=9)).set_index("name")
    assert table["ours"].to_dict() == pytest.approx({"grey": -0.2, "PSPNet": 0.1})
    assert table["table_3"].to_dict() == {"grey": -0.01929, "PSPNet": -0.045}
    assert table["published"].fillna("").to_dict() == {"grey": "", "PSPNet": "below 0"}  # whatever the sizes, it asks for the side
    assert table["verdict"].to_dict() == {"grey": "not measured", "PSPNet": "opposite direction"}
    assert table.loc["grey", "rule"] == "printed as not significant"
    assert table["n"].to_dict() == {"grey": 2, "PSPNet": 2} and table["trainings"].to_dict() == {"grey": 4, "PSPNet": 2}


def test_a_coefficient_claims_a_side_only_where_it_is_printed_as_significant():
    """Table 3 marks the blurred and the grey background "ns", all others with stars."""
    names = [*masks.SCENARIOS.values(), *masks.MODELS.values()]
    found = pd.DataFrame({"name": names, "n": 9, "estimate": -0.2, "low": -0.3, "high": -0.1})
    table = masks.table3(found).set_index("name")
    assert set(table.index[table["verdict"] == "not measured"]) == {"blurred background", "grey"}
    assert set(table["verdict"].drop(["blurred background", "grey"])) == {"same direction"}
    assert table["table_3"].loc[["blurred background", "red", "FPN"]].tolist() == [0.01833, -0.07702, -0.2081]


def test_the_luck_of_trainings_widens_the_interval_of_a_network_and_of_no_scenario():
    """Two trainings at 0.1 on either side of their mean: a variance of 0.02, of the mean 0.01, and one degree of freedom."""
    table = masks.effects(measured(0.1), TRAINED, freedom=9).set_index("name")
    half = scipy.stats.t.ppf(0.975, 1) * 0.1
    assert table.loc["PSPNet", ["estimate", "low", "high"]].tolist() == pytest.approx([0.1, 0.1 - half, 0.1 + half])
    assert table.loc["grey", ["estimate", "low", "high"]].tolist() == pytest.approx([-0.2] * 3)


def test_every_training_has_its_own_mean_over_originals_and_ends():
    table = masks.by_training(measured(0.1), TRAINED)
    assert table[["model", "training"]].to_numpy().tolist() == [[name, run] for name in TRAINED for run in (1, 2)]
    assert table["estimate"].tolist() == pytest.approx([0.75, 0.75, 0.95, 0.75])


def test_a_network_has_as_many_trainings_as_runs_each_with_a_name():
    names = masks.trainings(changed(SETTINGS, networks=["DeepLabV3Plus", "FPN"], runs=2))
    assert names == {"DeepLabV3Plus": ["DeepLabV3Plus 1", "DeepLabV3Plus 2"], "FPN": ["FPN 1", "FPN 2"]}


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
        ({"runs": 1}, r"segmentation\.runs: 1"),
    ],
)
def test_one_clear_error_names_what_the_section_may_hold(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **changes)
