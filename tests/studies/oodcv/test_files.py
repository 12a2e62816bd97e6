"""The OOD-CV layout on a made-up tree: what is read is what was written, and a damaged tree gives one clear error."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cnslib.studies.oodcv import files

# Names as the released label files have them; the class train ends in the word rain.
WEATHER = {
    "collection_train_train_+_snow_OR_snowy_google_0003_0.jpg": ("train", "snow"),
    "collection_train_train_+_fog_OR_foggy_OR_smog_google_0110_0.jpg": ("train", "fog"),
    "collection_boat_boat_+_rain_OR_rainy_naver_0006_0.jpg": ("boat", "rain"),
    "collection_boat_boat_in_foggy_day_google_0067_1.jpg": ("boat", "fog"),
    "collection_boat_boat_in_desert_google_0001_0.jpg": ("boat", "unknown"),
}


@pytest.fixture
def root(tmp_path) -> Path:
    """A split of weather pictures of different sizes, with a column for pose estimation."""
    folder = tmp_path / "nuisances" / "weather"
    for number, (name, (label, _)) in enumerate(WEATHER.items()):
        (folder / "Images" / label).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20 + number, 30), (number, 0, 0)).save(folder / "Images" / label / name, quality=100)
    rows = [{"imgs": name, "labels": label, "azimuth": 1.5} for name, (label, _) in WEATHER.items()]
    pd.DataFrame(rows).to_csv(folder / "labels.csv", index=False)
    return tmp_path


def edit(root: Path, change) -> None:
    """Rewrites the label csv."""
    path = root / "nuisances" / "weather" / "labels.csv"
    change(pd.read_csv(path)).to_csv(path, index=False)


def test_each_picture_has_its_class_its_size_and_the_weather_it_was_crawled_for(root):
    table, pictures = files.read(root, "weather", classes=["boat", "train"])
    assert dict(zip(table["name"], zip(table["class"], table["weather"], strict=True), strict=True)) == WEATHER
    assert [picture.shape for picture in pictures] == [(30, 20 + number, 3) for number in range(5)]


def test_classes_that_are_not_asked_for_are_left_out(root):
    table, pictures = files.read(root, "weather", classes=["train"])
    assert set(table["class"]) == {"train"} and len(pictures) == len(table) == 2


def test_a_row_that_is_listed_twice_counts_once(root):
    edit(root, lambda table: pd.concat([table, table.head(2)]))
    assert len(files.listing(root, "weather")) == len(WEATHER)


def test_what_is_written_comes_back_byte_for_byte(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    table = pd.DataFrame({"name": ["a_fog_0.png", "b_snow_1.png", "c_2.png"], "class": ["car", "car", "bus"]})
    for split in files.SPLITS:
        files.write(tmp_path, split, table, pictures)
        found, back = files.read(tmp_path, split, classes=["car", "bus"])
        assert found[["name", "class"]].equals(table) and np.array_equal(np.stack(back), pictures)
        assert found["weather"].tolist() == ["fog", "snow", "unknown"]


def test_an_unknown_nuisance_is_named_with_the_accepted_ones(root):
    with pytest.raises(ValueError, match=r"'hail' is not accepted; accepted: train, iid_test, context.*weather"):
        files.listing(root, "hail")


@pytest.mark.parametrize("split", ["pose", "train"])
def test_a_missing_folder_is_named(root, split):
    with pytest.raises(FileNotFoundError, match=f"{split}/Images does not exist"):
        files.listing(root, split)


def test_a_missing_csv_and_missing_columns_are_named(root):
    edit(root, lambda table: table.drop(columns="labels"))
    with pytest.raises(ValueError, match=r"labels\.csv lacks the columns labels; it has imgs, azimuth"):
        files.listing(root, "weather")
    (root / "nuisances" / "weather" / "labels.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"labels\.csv does not exist"):
        files.listing(root, "weather")


def test_rows_without_a_picture_are_counted_and_the_first_is_named(root):
    edit(root, lambda table: pd.concat([table, pd.DataFrame({"imgs": ["gone.jpg"], "labels": ["boat"]})]))
    with pytest.raises(FileNotFoundError, match=r"1 of 6 rows of labels\.csv have no picture, first .*Images/boat/gone\.jpg"):
        files.listing(root, "weather")


def test_a_picture_with_two_labels_and_one_that_is_no_picture_are_named(root):
    first = next(iter(WEATHER))
    (root / "nuisances" / "weather" / "Images" / "train" / first).write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"0003_0\.jpg is not a picture"):
        files.read(root, "weather", classes=["train"])
    edit(root, lambda table: pd.concat([table, table.head(1).assign(labels="boat")]))
    with pytest.raises(ValueError, match="1 pictures two labels, first collection_train"):
        files.listing(root, "weather")


def test_a_class_without_a_picture_is_named(root):
    with pytest.raises(FileNotFoundError, match="no picture of class 'sofa'; it has boat, train"):
        files.read(root, "weather", classes=["boat", "sofa"])


def test_file_names_begin_with_the_weather_that_was_asked_for():
    rows = pd.DataFrame({"shift": ["heavy snow", "unshifted"]})
    assert files.named(rows)["name"].tolist() == ["snow_000.png", "unshifted_001.png"]
