"""What notebook 41 shows: colours of labels, maps in the order of their states."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from cnslib.core import tables
from cnslib.stats.accuracy import Shares
from cnslib.studies.segmentation import inputs, masks, views


def test_every_label_has_a_colour_of_its_own():
    colours = views.palette()
    assert len(np.unique(colours, axis=0)) == len(colours) == len(masks.LABELS) == 11


def test_the_legend_names_the_classes_that_are_known_in_their_own_colours():
    axes = plt.figure().subplots()
    views.key(axes, ["trouser", "bag"])
    drawn = {patch.get_label(): patch.get_facecolor()[:3] for patch in axes.get_legend().get_patches()}
    assert list(drawn) == ["trouser", "bag"]
    assert np.allclose(list(drawn.values()), views.palette()[[2, 9]] / 255)
    plt.close("all")


def test_maps_are_shown_in_the_order_of_their_states(garment):
    """State i is kept as a map whose every pixel is i; the table is read upside down and holds another garment's maps, too."""
    keys = inputs.keys(garment, inputs.ENDS)
    maps = [{**key, "image": tables.encode(np.full((2, 2), place, np.uint8))} for place, key in enumerate(keys)]
    others = [{**row, "seed": 1} for row in maps]
    shown = views.predicted(pd.DataFrame([*others, *reversed(maps)]), garment)
    assert shown[:, 0, 0].tolist() == list(range(len(keys))) and shown.shape == (len(keys), 2, 2)


def test_names_of_classifiers_never_lie_over_each_other():
    """Five classifiers at one place and one far away: at most one name has room on every side, the lone one is always named."""
    names = [*"abcde", "alone"]
    points = pd.DataFrame({"model": names, "share": [0.2] * 5 + [0.8], "drop": [0.3] * 5 + [0.6]})
    points = points.assign(**{f"{of} {end}": points[of] for of in ("share", "drop") for end in ("low", "high")})
    figure, axes = plt.subplots()
    views.cloud(axes, points, reference=0.5)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert "alone" in [text.get_text() for text in axes.texts]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    plt.close(figure)


def test_changes_are_paired_with_the_originals():
    """Two classifiers whose share rises by 0.1 and 0.3 under every scenario, whatever a resample makes of the originals."""
    groups, resamples = [*inputs.NAMES, "all"], np.linspace(-0.2, 0.2, 21)[:, None, None]
    start = 0.4 + np.broadcast_to(resamples, (21, len(groups), 2))
    samples = np.stack([start, start + np.array([0.1, 0.3])], -1)
    found = views.changes(Shares(samples, groups, np.full(len(groups), 7), ["a", "b"], inputs.ENDS, 0.95))
    assert found["scenario"].tolist() == list(inputs.NAMES) and set(found["n"]) == {7}
    assert np.allclose(found[["estimate", "low", "high"]], 0.2)
