"""The OOD-CV layout on a made-up tree: what is read is what lies there, and a damaged tree gives one clear error."""

from pathlib import Path

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
FIRST = next(iter(WEATHER))


@pytest.fixture(params=["nuisances/weather", "train", "iid_test"])
def folder(tmp_path, request) -> Path:
    """A split of pictures of different sizes, with a column for pose estimation."""
    folder = tmp_path / request.param
    for number, (name, (label, _)) in enumerate(WEATHER.items()):
        (folder / "Images" / label).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20 + number, 30), (number, 0, 0)).save(folder / "Images" / label / name, quality=100)
    rows = [{"imgs": name, "labels": label, "azimuth": 1.5} for name, (label, _) in WEATHER.items()]
    pd.DataFrame(rows).to_csv(folder / "labels.csv", index=False)
    return folder


def read(folder: Path, classes=("boat", "train")):
    root = folder.parents[1] if folder.name == "weather" else folder.parent
    return files.read(root, folder.name, classes=list(classes))


def test_each_picture_has_its_class_its_size_and_the_weather_it_was_crawled_for(folder):
    table, pictures = read(folder)
    assert dict(zip(table["name"], zip(table["class"], table["weather"], strict=True), strict=True)) == WEATHER
    assert [picture.shape for picture in pictures] == [(30, 20 + number, 3) for number in range(5)]
    assert set(read(folder, ["train"])[0]["class"]) == {"train"}


@pytest.mark.parametrize("folder", ["nuisances/weather"], indirect=True)
def test_a_damaged_tree_is_named(folder):
    path = folder / "labels.csv"
    table = pd.read_csv(path)
    pd.concat([table, table.head(2)]).to_csv(path, index=False)
    assert len(read(folder)[0]) == len(WEATHER)  # a row that is there twice counts once
    with pytest.raises(FileNotFoundError, match="no picture of class 'sofa'; it has boat, train"):
        read(folder, ["boat", "sofa"])
    cases = {
        r"1 of 6 rows of labels\.csv have no picture, first .*Images/boat/gone\.jpg": pd.concat(
            [table, table.tail(1).assign(imgs="gone.jpg")]
        ),
        "1 pictures two labels, first collection_train": pd.concat([table, table.head(1).assign(labels="boat")]),
        r"labels\.csv lacks the columns labels; it has imgs, azimuth": table.drop(columns="labels"),
    }
    for message, changed in cases.items():
        changed.to_csv(path, index=False)
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            read(folder)
    table.to_csv(path, index=False)
    (folder / "Images" / "train" / FIRST).write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"0003_0\.jpg is not a picture"):
        read(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"labels\.csv does not exist"):
        read(folder)


@pytest.mark.parametrize("split", ["pose", "train"])
def test_unknown_splits_and_missing_folders_are_named(tmp_path, split):
    with pytest.raises(FileNotFoundError, match=f"{split}/Images does not exist"):
        files.listing(tmp_path, split)
    with pytest.raises(ValueError, match=r"'hail' is not accepted; accepted: train, iid_test, context.*weather"):
        files.listing(tmp_path, "hail")
