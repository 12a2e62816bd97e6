import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from official_files import CLASSES, INFO, KEPT, LABELS, annotations, benchmark_files, generated, jpeg, published, write_folder, write_zip

from cnslib.core import tables
from cnslib.core.names import SHIFTS
from cnslib.data import archives, official


def bring_in(source: Path, to: Path, **settings) -> tuple[pd.DataFrame, pd.DataFrame]:
    paths = official.import_benchmark(source, labels=LABELS, classes=CLASSES, folder=to / "images", kept=to / "kept.parquet", **settings)
    assert sorted(paths.values()) == sorted((to / "images").glob("*.parquet"))
    images = pd.concat([tables.read(path, tables.images) for path in paths.values()]).sort_values(tables.KEY, ignore_index=True)
    return images, tables.read(to / "kept.parquet", tables.kept_schema)


def bring_out(to: Path, target: Path, **changes) -> Path:
    kept = tables.read(to / "kept.parquet", tables.kept_schema)
    return archives.write(target, official.exported(to / "images", kept, **{"labels": LABELS, "info": INFO, **changes}))


def test_an_image_becomes_the_row_that_the_authors_annotate_with_its_own_scale_zero(tmp_path):
    files = benchmark_files() | {published("painting_style", 22, 34, 0.0): jpeg("another machine")}
    images, kept = bring_in(write_folder(tmp_path / "cns", files, annotations(files)), tmp_path)
    rows = images.query("shift == 'painting style' and `class` == 'bald eagle'")
    assert rows[["seed", "scale"]].to_numpy().tolist() == [[34, 0.0], [34, 0.5], [34, 1.0]] and len(images) == 9
    assert rows["image"].tolist() == [files[published("painting_style", 22, 34, scale)] for scale in (0, 0.5, 1)]
    shifts = ["design of sculpture", "painting style", "painting style"]
    assert kept["shift"].tolist() == shifts and kept["seed"].tolist() == [34, 34, 2]


@pytest.mark.parametrize("name", [published, generated])
def test_a_folder_a_zip_and_a_zip_with_a_root_give_equal_tables(tmp_path, name):
    files = benchmark_files(name)
    sources = [
        write_folder(tmp_path / "cns", files),
        write_zip(tmp_path / "a.zip", files | {"__MACOSX/painting_style/._seed.jpg": b"junk", "README.md": b"text"}),
        write_zip(tmp_path / "b.zip", files, root="cns_bench/"),
    ]
    first, *others = [bring_in(source, tmp_path / str(place)) for place, source in enumerate(sources)]
    for other in others:
        pd.testing.assert_frame_equal(first[0], other[0])
        pd.testing.assert_frame_equal(first[1], other[1])


@pytest.mark.parametrize("target", ["again", "again.zip"])
def test_export_restores_every_file_and_import_every_row(tmp_path, target):
    files = benchmark_files()
    before = bring_in(write_folder(tmp_path / "cns", files, annotations(files)), tmp_path)
    out = bring_out(tmp_path, tmp_path / target)
    after = bring_in(out, tmp_path / "second")
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other)
    with archives.opened(out) as archive:
        assert {entry: archive.read(entry) for entry in archive.names if entry != official.ANNOTATIONS} == files
        assert json.loads(archive.read(official.ANNOTATIONS)) == annotations(files)
    if target.endswith(".zip"):  # others can unpack it
        with zipfile.ZipFile(out) as archive:
            assert all(entry.external_attr >> 16 == 0o644 for entry in archive.infolist())
            archive.extractall(tmp_path / "unpacked")
        unpacked = {path.relative_to(tmp_path / "unpacked").as_posix(): path.read_bytes() for path in tmp_path.glob("unpacked/*/*/*.jpg")}
        assert unpacked == files


def test_every_shift_has_a_name_that_is_read_back_and_a_scale_between_thousandths_has_none():
    names = [official.image_name(shift, "bald eagle", 1, 0.5, labels=LABELS, form="jpg") for shift in SHIFTS]
    found = [official.parsed(name, Path("cns"), LABELS, CLASSES) for name in names]
    assert found == [(shift, "bald eagle", 1, 0.5) for shift in SHIFTS]
    assert names[5] == "graffiti_style/022_bald eagle/seed_0001_scale_0500.jpg"
    assert official.image_name("heavy snow", "bald eagle", 1, 0.3 * 3, labels=LABELS, form="jpg").endswith("scale_0900.jpg")


def with_file(name):
    return lambda files: files.update({name: jpeg(1)})


FIRST = published(*KEPT[0], 0.5)
ERRORS = {
    "missing": (lambda files: files.pop(FIRST), r"an image is missing, \('painting style', 'bald eagle', 34\) at scale 0.5"),
    "class": (with_file("heavy_snow/007_cock/seed_0001_scale_0000.jpg"), r"unknown class '007_cock'"),
    "both forms": (with_file(generated(*KEPT[0], 0.5)), r"one image twice, \['painting_style/022_bald eagle/seed_0034_s.*0500"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_wrong_is_named_once(tmp_path, name):
    files, (damage, message) = benchmark_files(), ERRORS[name]
    damage(files)
    with pytest.raises(ValueError, match=message) as error:
        bring_in(write_folder(tmp_path / "cns", files), tmp_path)
    assert not (tmp_path / "kept.parquet").exists() and "\n" not in str(error.value)


def test_a_source_that_proves_broken_changes_nothing(tmp_path):
    bring_in(write_folder(tmp_path / "cns", benchmark_files()), tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "images").iterdir()}
    files = {name: jpeg("other", name) for name in benchmark_files(kept=KEPT[1:])}
    files[published(*KEPT[1], 1.0)] = b"<html>"
    with pytest.raises(ValueError, match="is not a picture"):
        bring_in(write_folder(tmp_path / "broken", files), tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "images").iterdir()} == before


def test_an_import_whose_last_table_cannot_be_written_changes_nothing(tmp_path):
    bring_in(write_folder(tmp_path / "cns", benchmark_files()), tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "images").iterdir()}
    (tmp_path / "file").write_bytes(b"")
    less = write_folder(tmp_path / "less", benchmark_files(kept=KEPT[:1]))
    with pytest.raises(OSError, match="file"):
        official.import_benchmark(less, labels=LABELS, classes=CLASSES, folder=tmp_path / "images", kept=tmp_path / "file" / "kept.parquet")
    assert {path: path.read_bytes() for path in (tmp_path / "images").iterdir()} == before
