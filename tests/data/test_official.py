"""The published CNS-Bench layout: both name forms, folder and zip, there and back, and one clear error for what is wrong."""

import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from official_files import (
    CLASSES,
    INFO,
    KEPT,
    LABELS,
    annotations,
    benchmark_files,
    generated,
    jpeg,
    published,
    write_folder,
    write_zip,
)
from PIL import Image
from torchvision.datasets import ImageFolder

from cnslib.core import tables
from cnslib.core.names import SHIFTS, UNSHIFTED
from cnslib.data import archives, official


def bring_in(source: Path, to: Path, **settings) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Imports a source; all images, and the kept trajectories."""
    paths = official.import_benchmark(source, labels=LABELS, classes=CLASSES, folder=to / "images", kept=to / "kept.parquet", **settings)
    assert sorted(paths.values()) == sorted((to / "images").glob("*.parquet"))
    images = pd.concat([tables.read(path, tables.images) for path in paths.values()]).sort_values(tables.KEY, ignore_index=True)
    return images, tables.read(to / "kept.parquet", tables.kept_schema)


def bring_out(to: Path, target: Path, **settings) -> Path:
    """Exports what was imported."""
    kept = tables.read(to / "kept.parquet", tables.kept_schema)
    return official.export_benchmark(to / "images", kept, target, labels=LABELS, info=INFO, **settings)


def contents(folder: Path) -> dict[str, bytes]:
    """The pictures under a folder by name."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".jpg", ".png")}


def test_an_image_becomes_the_row_that_the_authors_annotate(tmp_path):
    files = benchmark_files()
    images, kept = bring_in(write_folder(tmp_path / "cns", files, annotations(files)), tmp_path)
    row = images[(images["shift"] == "painting style") & (images["class"] == "bald eagle") & (images["scale"] == 1.0)]
    assert row["seed"].tolist() == [34]
    assert row["image"].iloc[0] == files["painting_style/022_bald eagle/seed_0034_scale_1000.jpg"]
    assert len(images) == 2 + 3 * 2  # two unshifted (class, seed), two further scales of three trajectories
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
@pytest.mark.parametrize("name", [published, generated])
def test_export_restores_every_file_and_import_every_row(tmp_path, name, target):
    files = benchmark_files(name)
    before = bring_in(write_folder(tmp_path / "cns", files, annotations(files)), tmp_path)
    out = bring_out(tmp_path, tmp_path / target, startnoise=750 if name is generated else None)
    after = bring_in(out, tmp_path / "second")
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other)
    with archives.opened(out) as archive:
        assert {entry: archive.read(entry) for entry in archive.names if entry != official.ANNOTATIONS} == files
        assert json.loads(archive.read(official.ANNOTATIONS)) == annotations(files)


def test_the_authors_loaders_read_an_export(tmp_path):
    """Their notebook reads the annotations and opens an image; their harness is an ImageFolder whose class is the first number."""
    bring_in(write_folder(tmp_path / "cns", benchmark_files()), tmp_path)
    out = bring_out(tmp_path, tmp_path / "export")
    with open(out / "annotations_cns.json") as stream:
        found = json.load(stream)
    assert found.keys() == {"info", "scales", "classes", "shifts", "images"} and found["info"] == INFO
    for entry in found["images"]:
        with Image.open(f"{out}/" + entry["image"]) as picture:
            assert picture.size == (16, 16) and picture.format == "JPEG"
    harness = ImageFolder(str(out / "painting_style"))
    assert [int(name[:3]) for name in harness.classes] == [22, 207] and len(harness) == 6


def test_our_own_png_images_keep_their_bytes_and_only_kept_trajectories_leave(tmp_path):
    scales = {UNSHIFTED: [0.0], "heavy snow": [0.5, 1.0]}
    for shift, own in scales.items():
        rows = [(shift, name, 1, scale, jpeg(shift, name, scale, form="PNG")) for name in CLASSES for scale in own]
        tables.write(pd.DataFrame(rows, columns=[*tables.KEY, "image"]), tmp_path / f"{shift.replace(' ', '_')}.parquet", tables.images)
    kept = pd.DataFrame({"shift": ["heavy snow"], "class": ["bald eagle"], "seed": [1]})
    out = official.export_benchmark(tmp_path, kept, tmp_path / "out", labels=LABELS, info=INFO)
    assert contents(out) == {
        f"heavy_snow/022_bald eagle/seed_0001_scale_{int(1000 * scale):04d}.png": jpeg(shift, "bald eagle", scale, form="PNG")
        for shift, own in scales.items()
        for scale in own
    }


def test_every_shift_has_a_name_that_is_read_back():
    names = [official.image_name(shift, "bald eagle", 1, 0.5, number=22, form="jpg") for shift in SHIFTS]
    found = [official.parsed(name, Path("cns"), LABELS, CLASSES) for name in names]
    assert found == [(shift, "bald eagle", 1, 0.5) for shift in SHIFTS]
    assert names[5] == "graffiti_style/022_bald eagle/seed_0001_scale_0500.jpg"


def test_unequal_images_of_scale_zero_are_refused_unless_each_shift_may_keep_its_own(tmp_path):
    files = benchmark_files() | {published("painting_style", 22, 34, 0.0): jpeg("another machine")}
    source = write_folder(tmp_path / "cns", files)
    with pytest.raises(ValueError, match=r"class 'bald eagle', seed 34 at scale 0 under 'painting style'"):
        bring_in(source, tmp_path)
    images, _ = bring_in(source, tmp_path, repeated="any")
    assert (images["scale"] == 0).sum() == 3 and UNSHIFTED not in set(images["shift"])
    assert contents(bring_out(tmp_path, tmp_path / "again")) == files


def missing(files: dict, told: dict) -> None:
    del files[published("painting_style", 22, 34, 0.5)]
    told["images"] = annotations(files)["images"]


def unknown_shift(files: dict, told: dict) -> None:
    files["heavy_frost/022_bald eagle/seed_0001_scale_0000.jpg"] = jpeg(1)


def unknown_class(files: dict, told: dict) -> None:
    files["heavy_snow/007_cock/seed_0001_scale_0000.jpg"] = jpeg(1)


def no_class(files: dict, told: dict) -> None:
    files["heavy_snow/bald eagle/seed_0001_scale_0000.jpg"] = jpeg(1)


def both_forms(files: dict, told: dict) -> None:
    files[generated(*KEPT[0], 0.5)] = jpeg(1, form="PNG")


def unnamed(files: dict, told: dict) -> None:
    files["heavy_snow/022_bald eagle/picture.jpg"] = jpeg(1)


def web_page(files: dict, told: dict) -> None:
    files[published(*KEPT[0], 0.5)] = b"<!DOCTYPE html><html>"


def annotated_twice(files: dict, told: dict) -> None:
    told["images"].append(told["images"][0])


def annotated_in_vain(files: dict, told: dict) -> None:
    told["images"].append(told["images"][0] | {"image": published("heavy_snow", 22, 1, 0.5)})


def annotated_outside(files: dict, told: dict) -> None:
    told["images"][0] = told["images"][0] | {"image": "../" + told["images"][0]["image"]}


def not_annotated(files: dict, told: dict) -> None:
    told["images"].pop()


def contradicted(files: dict, told: dict) -> None:
    told["images"][0]["seed"] += 1


def incomplete(files: dict, told: dict) -> None:
    del told["images"][0]["scale"]


ERRORS = {
    missing: r"an image is missing, \('painting style', 'bald eagle', 34\) at scale 0.5",
    unknown_shift: r"unknown shift 'heavy_frost'; accepted: cartoon_style, .*the_design_of_sculpture",
    unknown_class: r"unknown class '007_cock'",
    no_class: r"unknown class 'bald eagle'",
    both_forms: r"one image twice, \['painting_style/022_bald eagle/seed_0034_s.*0500",
    unnamed: r"the name 'heavy_snow/022_bald eagle/picture.jpg' is not understood",
    web_page: r"seed_0034_scale_0500.jpg is not a picture \(it begins with b'<!DOCTYPE",
    annotated_twice: r"'painting_style/022_bald eagle/seed_0034_scale_0000.jpg' is annotated twice",
    annotated_in_vain: r"'heavy_snow/022_bald eagle/seed_0001_scale_0500.jpg' is annotated, but there is no such image",
    annotated_outside: r"'\.\./painting_style.* is annotated, but there is no such image",
    not_annotated: r"1 images have no annotation, for example 'the_design_of_sculpture/022_bald eagle/seed_0034_scale_1000.jpg'",
    contradicted: r"contradicts its image's name",
    incomplete: r"is not understood; accepted: image, seed, scale, shift, class",
}


@pytest.mark.parametrize("damage", ERRORS, ids=lambda damage: damage.__name__)
def test_what_is_wrong_is_named_once(tmp_path, damage):
    files = benchmark_files()
    told = annotations(files)
    damage(files, told)
    if damage.__name__ in ("unknown_shift", "unknown_class", "no_class", "both_forms", "unnamed"):
        told = None
    with pytest.raises(ValueError, match=ERRORS[damage]):
        bring_in(write_folder(tmp_path / "cns", files, told), tmp_path)
    assert not (tmp_path / "kept.parquet").exists()


def test_annotations_may_lie_elsewhere_and_must_be_annotations(tmp_path):
    files = benchmark_files()
    source = write_zip(tmp_path / "cns.zip", files)
    (told := tmp_path / "told.json").write_text(json.dumps(annotations(files)))
    assert len(bring_in(source, tmp_path, annotations=told)[1]) == 3
    told.write_text("<html>")
    with pytest.raises(ValueError, match=r"told\.json holds no annotations"):
        bring_in(source, tmp_path, annotations=told)


def test_an_export_overwrites_nothing_and_leaves_nothing_half_done(tmp_path):
    bring_in(write_folder(tmp_path / "cns", benchmark_files()), tmp_path)
    with pytest.raises(FileExistsError, match="cns exists"):
        bring_out(tmp_path, tmp_path / "cns")
    (tmp_path / "images" / "design_of_sculpture.parquet").unlink()
    kept = tables.read(tmp_path / "kept.parquet", tables.kept_schema)
    before = sorted(tmp_path.iterdir())
    for target in ("out", "out.zip"):
        with pytest.raises(FileNotFoundError, match=r"design_of_sculpture\.parquet"):
            official.export_benchmark(tmp_path / "images", kept, tmp_path / target, labels=LABELS, info=INFO)
    assert sorted(tmp_path.iterdir()) == before
    for changes, message in (({"labels": ["a"]}, "class: 'bald eagle'"), ({"info": {}}, "info")):
        with pytest.raises(ValueError, match=message):
            settings = {"labels": LABELS, "info": INFO} | changes
            official.export_benchmark(tmp_path / "images", kept[1:], tmp_path / "out", **settings)


def test_a_scale_between_thousandths_has_no_name():
    with pytest.raises(ValueError, match=r"scale: 0\.03125"):
        official.image_name("heavy snow", "bald eagle", 1, 0.03125, number=22, form="jpg")
    assert official.image_name("heavy snow", "bald eagle", 1, 0.3 * 3, number=22, form="jpg").endswith("scale_0900.jpg")


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


def test_a_zip_can_be_unpacked_by_others(tmp_path):
    files = benchmark_files()
    bring_in(write_folder(tmp_path / "cns", files), tmp_path)
    with zipfile.ZipFile(bring_out(tmp_path, tmp_path / "out.zip")) as archive:
        assert all(entry.external_attr >> 16 == 0o644 for entry in archive.infolist())
        archive.extractall(tmp_path / "unpacked")
    assert contents(tmp_path / "unpacked") == files
