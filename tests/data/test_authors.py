from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from official_files import CLASSES, FOLDERS, LABELS, results_csv, write_folder, write_zip

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.data import artifacts, authors

IMAGES = [(22, f"seed_0034_scale_{scale}.jpg") for scale in ("0000", "0500", "1000")]


def rows(*given: float | int) -> list[tuple]:
    return [(answer, *image) for answer, image in zip(given, IMAGES, strict=True)]


def files() -> dict[str, bytes]:
    vit, longer = "dinov2_vit", "dinov2_vit_reg"
    return {
        f"{vit}__heavy_snow.csv": results_csv(vit, "heavy_snow", rows(22.0, 22.0, 207.0)).encode(),
        f"{vit}__heavy_fog.csv": results_csv(vit, "heavy_fog", rows(22, 207, 22)).encode(),
        f"{longer}__heavy_snow.csv": results_csv(longer, "heavy_snow", rows(5.0, 22.0, 22.0)).encode(),
        f"{longer}__heavy_fog.csv": results_csv(longer, "heavy_fog", rows(22, 22, 22), tenth=True).encode(),
    }


def bring_in(source: Path, to: Path) -> dict[str, pd.DataFrame]:
    paths = authors.import_predictions(source, labels=LABELS, classes=CLASSES, folder=to)
    return {model: tables.read(path, tables.imported) for model, path in paths.items()}


def one(text: str, file: str = "vit__heavy_snow.csv") -> pd.DataFrame:
    return authors.read(text.encode(), file, Path("results.zip"), labels=LABELS, classes=CLASSES)


def test_answers_are_those_counted_by_hand_for_each_exact_model_and_what_is_absent_is_so(tmp_path):
    found = bring_in(write_zip(tmp_path / "results.zip", files(), root="results/"), tmp_path / "out")
    assert sorted(found) == ["dinov2_vit", "dinov2_vit_reg"]
    plain = found["dinov2_vit"]
    right = (plain["top1"] == plain["class"]).groupby(plain["shift"]).apply(list).to_dict()
    assert right == {"heavy snow": [True, True, False], "heavy fog": [True, False, True]}
    other = artifacts.complete_predictions(tmp_path / "out", ["dinov2_vit_reg"])
    assert other.loc[other["top1"] == "label 5", ["shift", "seed", "scale"]].to_numpy().tolist() == [["heavy snow", 34, 0.0]]
    assert sorted(other["scale"]) == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]  # one file had a tenth of it
    assert set(other["model"]) == {"dinov2_vit_reg"} and other["probability"].isna().all()


def test_the_column_of_right_and_wrong_must_agree_and_the_index_is_ignored():
    text = results_csv("vit", "heavy_snow", rows(22, 207, 22))
    with pytest.raises(ValueError, match=r"3 rows are wrong, .*vit says whether pred_class is gt_class"):
        one(text.replace("True", "unknown").replace("False", "True").replace("unknown", "False"))
    assert (one(text)["top1"] == one(text)["class"]).tolist() == [True, False, True]
    unordered = "\n".join(f"7{line[1:]}" if line[0] in "01" else line for line in text.splitlines())
    pd.testing.assert_frame_equal(one(text), one(unordered))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed_0034_scale_0500", "seed_0034_scale_0000", r"seed and scale of img_name"),
        ("0,22.0,22", "0,22.0,207", r"gt_class is the number in class_str"),
        ("heavy_snow,022", "heavy_fog,022", r"the shift 'heavy_snow' of the file's name"),
        ("022_bald eagle", "023_vulture", r"unknown class '023_vulture'"),
        (",vit", ",deit", r"no column 'vit'"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(old, new, message):
    text = results_csv("vit", "heavy_snow", rows(22.0, 22.0, 22.0))
    assert old in text
    with pytest.raises(ValueError, match=r"results\.zip: vit__heavy_snow\.csv.*" + message):
        one(text.replace(old, new))


def test_two_files_of_one_model_and_shift_are_named(tmp_path):
    both = dict.fromkeys(("x/vit__heavy_snow.csv", "y/vit__heavy_snow.csv"), results_csv("vit", "heavy_snow", rows(22, 22, 22)).encode())
    with pytest.raises(ValueError, match="of the same model and shift"):
        bring_in(write_folder(tmp_path / "c", both), tmp_path / "out")


def ours(*models: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    keys = [(UNSHIFTED, "bald eagle", seed, 0.0) for seed in (1, 2)] + [("heavy snow", "bald eagle", seed, 1.0) for seed in (1, 2)]
    parts = []
    for model in models:
        given = "golden retriever" if model == models[-1] else "bald eagle"
        table = pd.DataFrame(keys, columns=tables.KEY).assign(model=model, top1=given, probability=0.5, margin=0.1, preprocessing="abc")
        parts.append(table.assign(top5=[[given]] * len(table)))
    return pd.concat(parts, ignore_index=True), pd.DataFrame({"shift": ["heavy snow"], "class": ["bald eagle"], "seed": [2]})


def test_no_exported_name_is_part_of_another_and_all_come_back(tmp_path):
    """The authors' notebook takes for a model's the files whose names contain the model's."""
    names = ["resnet", "resnet_large", "large", "vit", "rain"]
    out = authors.export_predictions(*ours(*names), tmp_path / "out", labels=LABELS)
    table = pd.read_csv(out / "vit__heavy_snow.csv", index_col=0)
    assert list(table.columns) == [*authors.COLUMNS, "vit"]
    assert table.iloc[1].tolist() == [22.0, 22.0, "heavy_snow", FOLDERS[22], "seed_0002_scale_1000.png", "bald eagle", 2, 1.0, np.True_]
    files = sorted(path.name for path in out.iterdir())
    columns = {name: pd.read_csv(out / name, index_col=0).columns[-1] for name in files}
    assert all([model in other for other in files] == [other == name for other in files] for name, model in columns.items())
    assert files[-2:] == ["resnet_large__heavy_snow.csv", "vit__heavy_snow.csv"]  # as they are; the others are marked
    found = bring_in(out, tmp_path / "in")
    assert sorted(found) == sorted(names) and all(set(rows["model"]) == {name} for name, rows in found.items())
    with pytest.raises(ValueError, match=r"classifier: 'a' is not accepted; accepted: a name that no other one contains"):
        authors.apart(["a", "cns.a.cns"])
