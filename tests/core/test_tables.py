import json

import numpy as np
import pandas as pd
import pytest

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED

PICTURE = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)


def shard() -> pd.DataFrame:
    scales = {"heavy snow": (1.0, 0.5), UNSHIFTED: (0.0,)}
    rows = [(shift, "bag", 1, scale, tables.encode(PICTURE)) for shift, values in scales.items() for scale in values]
    return pd.DataFrame(rows, columns=[*tables.KEY, "image"])


def test_a_table_comes_back_sorted_and_its_bytes_do_not_depend_on_row_order(tmp_path):
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    tables.write(shard(), first, tables.images)
    tables.write(shard().iloc[::-1], second, tables.images)
    assert first.read_bytes() == second.read_bytes()
    assert tables.read(first, tables.images)["scale"].tolist() == [0.5, 1.0, 0.0]


def test_the_colours_of_a_jpeg_are_as_fine_as_its_brightness():
    lines = np.where(np.arange(64)[:, None] % 2, (255, 0, 0), (0, 130, 0)).astype(np.uint8)  # of about equal brightness
    kept = tables.decode(tables.encode(np.repeat(lines[:, None], 64, axis=1), quality=95), "row").astype(int)
    assert kept[1::2, :, 0].mean() > 220 and kept[::2, :, 0].mean() < 30


def test_a_broken_table_is_refused_and_nothing_is_written(tmp_path):
    path, whole = tmp_path / "images.parquet", shard()
    broken = {"shift": pd.concat([whole, whole]), "scale": whole.assign(scale=[np.nan, 0.5, 0.0]), "extra": whole.assign(extra=1)}
    for message, table in broken.items():
        with pytest.raises(ValueError, match=message):
            tables.write(table, path, tables.images)
        assert not path.exists()


def test_pictures_survive_the_round_trip_and_bytes_that_are_none_are_named_with_their_row():
    assert np.array_equal(tables.pictures(shard(), "shard")[2], PICTURE)
    broken = shard()
    broken.loc[1, "image"] = b"not a picture"
    with pytest.raises(ValueError, match=r"shard \('heavy snow', 'bag', 1, 0.5\): its image is not a picture"):
        tables.pictures(broken, "shard")


def test_the_unshifted_image_joins_every_trajectory():
    wide = tables.trajectories(shard(), ["heavy snow", "heavy fog"])
    assert sorted(wide.loc[wide["shift"] == "heavy snow", "scale"]) == [0.0, 0.5, 1.0]
    assert wide.loc[wide["shift"] == "heavy fog", "scale"].tolist() == [0.0]
    assert UNSHIFTED not in set(wide["shift"])


def test_rows_are_numbered_in_the_order_of_words_whatever_that_of_categories():
    table = pd.DataFrame({"class": ["coat", "bag", "a dress", "bag"], "seed": [10, 2, 1, 10]})
    for form in (table, table.astype({"class": pd.CategoricalDtype(["coat", "dress", "bag", "a dress"])})):
        number, distinct = tables.numbered(form, ["class", "seed"])
        assert number.tolist() == [3, 1, 0, 2] and distinct["class"].tolist() == ["a dress", "bag", "bag", "coat"]


def test_wanted_rows_without_a_match_are_shown():
    wanted = pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": [1, 7]})
    assert tables.select(shard(), wanted[:1], tables.TRAJECTORY, "shard")["scale"].tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match=r"shard: 1 rows missing .*7.* 0 foreign"):
        tables.select(shard(), wanted, tables.TRAJECTORY, "shard")


def test_metrics_are_records_with_n_and_interval(tmp_path):
    record = {"n": 3, "estimate": 1 / 3, "low": 0.0, "high": float("nan")}
    tables.write_metrics(tmp_path / "m.json", {"ce": {"vit": record}})
    assert json.loads((tmp_path / "m.json").read_text())["ce"]["vit"] == {"n": 3, "estimate": 0.333333, "low": 0.0, "high": None}
    for bad in ({"ce": 0.5}, {"ce": {"n": 1, "estimate": 2.0}}):
        with pytest.raises(ValueError, match="ce"):
            tables.write_metrics(tmp_path / "m.json", bad)
