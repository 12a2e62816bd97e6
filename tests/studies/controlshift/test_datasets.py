import pytest
from golden_units import difference
from tiny_settings import SHIFTED as SETTINGS

from cnslib.core import recipes, tables, workers
from cnslib.models import text_to_image
from cnslib.studies.controlshift import datasets
from cnslib.studies.controlshift.datasets import Decoder, ImageFile

CLASSES = ["sneaker", "ankle boot"]
pytestmark = pytest.mark.usefixtures("in_place")


@pytest.fixture(scope="module")
def decoder(tiny_pipeline_dir, tiny_tokens_dir) -> Decoder:
    pipe = text_to_image.load_pipeline(tiny_pipeline_dir, "cpu")
    text_to_image.load_tokens(pipe, tiny_tokens_dir, CLASSES)
    return datasets.text_to_image_decoder(pipe, text_to_image.origin(tiny_pipeline_dir, tiny_tokens_dir, CLASSES), CLASSES, SETTINGS)


@pytest.fixture(scope="module")
def folder(decoder, tmp_path_factory):
    place = tmp_path_factory.mktemp("sets")
    datasets.make(decoder, place)
    return place


def alone(function, *given):
    return workers.each(function, [given], device="cpu")[0]


def test_every_set_has_its_images_and_the_second_half_is_no_part_of_the_first(folder):
    """4 training sets of 3, 2 validation sets of 1, and 2 + 2 + 1 test sets of 2 per class; overlap at step 0 is extend's."""
    counts = {path.stem: len(tables.read(path, tables.images)) for path in folder.glob("*.parquet")}
    train = {f"train_{name}": 6 for name in ("truncation", "extend", "more", "full")}
    assert {name: count for name, count in counts.items() if name.startswith("train")} == train
    assert sum(counts.values()) == 4 * 6 + 2 * 2 + 5 * 4 and "test_overlap_0" not in counts
    tested = datasets.evaluation_set(folder, SETTINGS)
    assert tested.groupby(["shift", "scale"]).size().to_dict() == {(kind, float(s)): 4 for kind in datasets.KINDS for s in range(2)}
    more = datasets.load(folder, "train_more")
    assert set(more["seed"]) == {4, 5, 6} and not set(more["image"]) & set(datasets.load(folder, "train_extend")["image"])
    assert not difference(recipes.CONTROLSHIFT, tables.read(folder / "test_extend_1.parquet", tables.images))


@pytest.mark.parametrize("kind", datasets.TRAINED)
def test_at_intensity_zero_the_images_are_those_of_the_training_set_bit_for_bit(decoder, folder, kind):
    again = alone(datasets.class_rows, decoder, ImageFile("again", "train", kind, 0, 1, 3), "sneaker")
    stored = datasets.load(folder, f"train_{kind}").query("`class` == 'sneaker'")
    assert again["image"].tolist() == stored["image"].tolist()
