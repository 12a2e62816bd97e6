import json

import numpy as np
import pytest
from PIL import Image

from cnslib.data import imagenet, testsets


def write(folder, *names):
    folder.mkdir(parents=True)
    for number, name in enumerate(names):
        Image.fromarray(np.full((9, 11 + number, 3), 10 * number, np.uint8)).save(folder / name)


def test_v2_counts_its_folders_and_r_and_a_have_two_hundred_classes_of_their_own(tmp_path):
    """Folder 10 of V2 is output 10, whatever stands before it in the alphabet. Both lists have 200 classes, 86 of them in common."""
    for number in ("2", "10"):
        write(tmp_path / "v2" / number, "a.jpeg", "b.jpeg")
    found = testsets.load("imagenetv2", tmp_path / "v2")
    assert sorted(set(found.table["class"])) == sorted([imagenet.labels()[2], imagenet.labels()[10]]) and len(found.outputs) == 1000
    lists = {kind: {own[0] for _, own in testsets.numbered(kind).values()} for kind in testsets.LISTED}
    assert [len(own) for own in lists.values()] == [200, 200] and len(lists["imagenet-r"] & lists["imagenet-a"]) == 86


def test_an_answer_counts_among_the_classes_of_the_set(tmp_path):
    """The largest of all outputs is that of the tench, which ImageNet-R does not have."""
    write(tmp_path / "n01443537", "art_0.jpg")
    found = testsets.load("imagenet-r", tmp_path)
    logits = np.zeros((1, 1000))
    logits[0, [0, 1, 2]] = [9, 3, 5]
    assert found.predictions(logits) == [imagenet.labels()[2]] and found.table["class"].tolist() == ["goldfish"]
    assert testsets.load("imagenet-sketch", tmp_path).predictions(logits) == ["tench"]


def test_objectnet_takes_the_best_of_its_outputs_and_loses_its_frame(tmp_path):
    write(tmp_path / "images" / "alarm_clock", "x.png")
    write(tmp_path / "images" / "air_freshener", "y.png")
    folder = tmp_path / "mappings"
    with pytest.raises(FileNotFoundError, match=r"objectnet: .*folder_to_objectnet_label\.json does not exist"):
        testsets.load("objectnet", tmp_path)
    folder.mkdir()
    labels = {"alarm_clock": "Alarm clock", "air_freshener": "Air freshener", "plate": "Plate"}
    (folder / testsets.MAPPINGS[0]).write_text(json.dumps(labels))
    (folder / testsets.MAPPINGS[1]).write_text(json.dumps({"Alarm clock": "analog clock; digital clock", "Plate": "plate"}))
    found = testsets.load("objectnet", tmp_path)
    logits = np.zeros((2, 1000))
    logits[0, imagenet.index("digital clock")], logits[1, imagenet.index("plate")] = 2, 1
    assert found.predictions(logits) == ["Alarm clock", "Plate"] and found.table["class"].tolist() == ["Alarm clock"]
    assert [picture.shape for picture in found.pictures()] == [(5, 7, 3)]


def test_any_label_of_reals_is_right_and_a_picture_without_one_is_left_out(tmp_path):
    """Of four pictures of the tench: two labels, another class alone, its own, none."""
    pictures = tmp_path / "imagenet" / "val" / imagenet.wnids()[0]
    write(pictures, *(f"ILSVRC2012_val_0000000{number}.JPEG" for number in (1, 2, 3, 4)))
    listed = [[5, 0], [7], [0], [], *[[]] * (testsets.VALIDATED - 4)]
    (tmp_path / "real.json").write_text(json.dumps(listed))
    found = testsets.reassessed(tmp_path / "real.json", tmp_path / "imagenet", ["tench"])
    labels = imagenet.labels()
    assert found.table[["class", "seed"]].to_numpy().tolist() == [["tench", 1], [labels[7], 2], ["tench", 3]]
    assert found.predictions(np.eye(1000)[[5, 0, 5]]) == ["tench", "tench", labels[5]]  # right, wrong, wrong
    (tmp_path / "real.json").write_text(json.dumps(listed[1:]))
    with pytest.raises(ValueError, match=r"imagenet-real: .*real\.json, entries: 49999 is not accepted; accepted: 50,000 lists of labels"):
        testsets.reassessed(tmp_path / "real.json", tmp_path / "imagenet", ["tench"])
