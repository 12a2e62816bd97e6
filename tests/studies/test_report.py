"""The report of one's own classifier: any kind of model, the same numbers as the benchmark's, clear errors."""

import dataclasses
import itertools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from matplotlib import pyplot as plt
from torch import nn
from torchvision.transforms import v2
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

from cnslib.core import paths, tables
from cnslib.core.names import UNSHIFTED, identifier
from cnslib.core.settings import read
from cnslib.core.settings.analyses import Accuracy
from cnslib.core.settings.method import Bootstrap
from cnslib.data import answers, archives, imagenet, official
from cnslib.method import evaluation
from cnslib.models import classifiers
from cnslib.stats import accuracy
from cnslib.studies import report

CLASSES = ["sneaker", "bag"]
LABELS = ["bag", "sneaker", "coat"]
SHIFTS = ["heavy snow", "cartoon style"]
SCALES = [0.0, 1.0, 2.0]
SEEDS = [1, 2, 3, 4, 5, 6]
SETTINGS = Accuracy(reference="reference", bootstrap=Bootstrap(resamples=200, confidence=0.95, seed=1, target="same classes"))
TRANSFORM = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Brightness(nn.Module):
    """Says "bag" to pictures brighter than a threshold, else "sneaker": an answer that one sees."""

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold = nn.Parameter(torch.tensor(threshold))

    def forward(self, pixels):
        bright = pixels.mean(dim=(1, 2, 3)) - self.threshold
        return torch.stack([bright, -bright, torch.full_like(bright, -1.0)], dim=1)


def grey(name: str, scale: float) -> np.ndarray:
    """A bag starts white and a sneaker black; both turn grey with the scale, the bag past the middle."""
    value = {"bag": 250 - 80 * scale, "sneaker": 20 + 20 * scale}[name]
    return np.full((64, 64, 3), value, dtype=np.uint8)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> report.Benchmark:
    """Two classes, two shifts, three scales and three seeds; the reference takes the first step wrong, another is always right."""
    folder = tmp_path_factory.mktemp("generation")
    shards = evaluation.grid(folder, SHIFTS, CLASSES, scales=SCALES, seeds=len(SEEDS))
    for path, keys in shards.items():
        rows = [dict(zip(tables.KEY, key, strict=True), image=tables.encode(grey(key[1], key[3]))) for key in keys]
        tables.write(pd.DataFrame(rows), path, tables.images)
    keys = pd.DataFrame(itertools.chain(*shards.values()), columns=tables.KEY)
    perfect = keys.assign(model="perfect", top1=keys["class"])
    other = {"bag": "sneaker", "sneaker": "bag"}
    reference = keys.assign(model="reference", top1=keys["class"].where(keys["scale"] < 1, keys["class"].map(other)))
    kept = pd.DataFrame(itertools.product(SHIFTS, CLASSES, SEEDS), columns=tables.TRAJECTORY)
    answers = pd.concat([perfect, reference], ignore_index=True)
    return report.Benchmark(shards, kept, answers, LABELS, batch_size=4, settings=SETTINGS)


@pytest.fixture(scope="module")
def found(benchmark) -> report.Report:
    """At threshold 0.5 a bag at scale 2 (90 of 255) is called a sneaker; everything else is right."""
    return report.report(Brightness(0.5), name="mine", transform=TRANSFORM, on=benchmark)


def estimate(table: pd.DataFrame, model: str = "mine", shift: str = accuracy.ALL, **keys) -> float:
    for key, value in {"model": model, "shift": shift, **keys}.items():
        table = table[table[key] == value]
    (row,) = table["estimate"]
    return row


def test_accuracy_is_what_one_counts_by_hand(found):
    assert [estimate(found.tables["accuracy"], scale=scale) for scale in SCALES] == [1.0, 1.0, 0.5]


def test_failure_points_are_what_one_counts_by_hand(found):
    assert estimate(found.tables["never"]) == 0.5
    assert [estimate(found.tables["survival"], scale=scale) for scale in SCALES] == [1.0, 1.0, 0.5]


def test_rce_of_so_few_trajectories_is_not_defined(found):
    """Two per shift, and the rule asks for 50."""
    assert np.isnan(estimate(found.tables["rce"], shift=accuracy.MEAN))


def test_the_place_counts_who_is_better(found):
    summary = found.summary.set_index("quantity")
    assert summary.loc["accuracy at scale 2", ["estimate", "place", "of"]].tolist() == [0.5, 2, 3]
    assert summary.loc["accuracy at scale 0", "place"] == 1


def test_the_summary_names_its_quantities(found):
    names = ["accuracy at scale 0", "accuracy at scale 2", "accuracy drop at scale 2", "CE", "rCE", "never failed", "median failure scale"]
    assert found.summary["quantity"].tolist() == names


def test_differences_are_ones_own_accuracy_minus_that_of_each_other():
    pairs = {"first": ["a", "a", "mine"], "second": ["mine", "z", "z"], "scale": 1.0, "n": 9, "p": [0.01, 0.5, 0.03]}
    pairs |= {"estimate": [0.2, 0.4, 0.3], "low": [0.1, 0.3, 0.2], "high": [0.5, 0.6, 0.4], "p_holm": 1.0}
    table = report.differences(pd.DataFrame(pairs), "mine")
    assert table[["first", "second"]].to_numpy().tolist() == [["mine", "a"], ["mine", "z"]]
    assert table[["estimate", "low", "high"]].to_numpy().tolist() == [[-0.2, -0.5, -0.1], [0.3, 0.2, 0.4]]
    assert table["p_holm"].tolist() == pytest.approx([0.02, 0.03])  # two comparisons are this one's own


@pytest.mark.parametrize(("better", "places"), [(1, [1, 2, 2, 4]), (-1, [4, 2, 2, 1])])
def test_a_place_is_one_more_than_the_number_of_better_ones(better, places):
    table = pd.DataFrame({"model": list("abcd"), "n": 9, "estimate": [0.9, 0.7, 0.7, 0.3], "low": 0.0, "high": 1.0})
    found = [report.placed(table, name, better=better) for name in "abcd"]
    assert [row["place"] for row in found] == places and {row["of"] for row in found} == {4}
    assert [row["others"] for row in found] == [0.7, 0.7, 0.7, 0.7]


def test_the_classifier_that_is_always_right_is_first_in_everything(found):
    """The reference, wrong from the first step on, is last in all that is defined but at scale 0, where all are right."""
    heads = report.headlines(found.tables)
    first = {quantity: report.placed(table, "perfect", better=better)["place"] for quantity, (table, better) in heads.items()}
    last = {quantity: report.placed(table, "reference", better=better)["place"] for quantity, (table, better) in heads.items()}
    assert {quantity: place for quantity, place in first.items() if place != 1} == pytest.approx({"rCE": np.nan}, nan_ok=True)
    expected = {quantity: 1 if quantity == "accuracy at scale 0" else 3 for quantity in heads} | {"rCE": np.nan}
    assert last == pytest.approx(expected, nan_ok=True)


def test_what_is_not_defined_has_no_place():
    table = pd.DataFrame({"model": list("ab"), "n": 9, "estimate": [np.nan, 0.7], "low": np.nan, "high": np.nan})
    row = pd.Series(report.placed(table, "a", better=-1) | {"quantity": "rCE"})
    assert report.line(row) == "| rCE | 9 | undefined | open | 0.700 |  |"


def test_with_a_single_seed_nothing_is_certain(benchmark):
    """All differences are those of one unit: no interval, no p value, nobody surely better."""
    kept = benchmark.kept[benchmark.kept["seed"] == 1]
    alone = dataclasses.replace(benchmark, kept=kept, answers=benchmark.answers[benchmark.answers["seed"] == 1])
    own = alone.answers[alone.answers["model"] == "perfect"].assign(model="mine")
    text = report.compare(own, alone).text()
    assert "nan" not in text and "(no interval)" in text and "more accurate than 0 of 2 classifiers" in text


def test_differences_are_those_of_the_named_model_from_each_other_one(found):
    pairs = found.tables["pairs"].query("scale == 2").set_index("second")
    assert pairs["first"].eq("mine").all() and pairs["estimate"].to_dict() == {"perfect": -0.5, "reference": 0.5}
    assert (pairs["low"] <= pairs["estimate"]).all() and (pairs["estimate"] <= pairs["high"]).all()


def test_the_others_keep_the_numbers_they_have_without_ones_own(found, benchmark):
    alone = accuracy.accuracy(accuracy.error_shares(accuracy.outcomes(benchmark.answers, benchmark.kept), settings=SETTINGS.bootstrap))
    beside = found.tables["accuracy"].query("model != 'mine'").reset_index(drop=True)
    pd.testing.assert_frame_equal(
        alone.sort_values(["shift", "model", "scale"], ignore_index=True),
        beside.sort_values(["shift", "model", "scale"], ignore_index=True),
    )


def test_a_blur_before_the_network_changes_nothing_on_pictures_without_structure(benchmark, found):
    behind = nn.Sequential(v2.GaussianBlur(7, sigma=1.0), Brightness(0.5))
    blurred = report.report(behind, name="mine", transform=TRANSFORM, on=benchmark)
    pd.testing.assert_series_equal(blurred.predictions["top1"], found.predictions["top1"])


def test_the_labels_may_stand_in_another_order(benchmark, found):
    class Turned(Brightness):
        def forward(self, pixels):
            return super().forward(pixels)[:, [2, 0, 1]]

    turned = report.report(Turned(0.5), name="mine", labels=["coat", "bag", "sneaker"], transform=TRANSFORM, on=benchmark)
    assert turned.predictions["top1"].tolist() == found.predictions["top1"].tolist()


def test_the_report_is_written_and_says_what_the_tables_say(found, tmp_path):
    folder = found.save(tmp_path / "mine")
    text = (folder / "report.md").read_text()
    assert "mine names 100% (86% to 100%) of the images without a shift, and 50% (" in text
    assert "mine is more accurate than 1 of 2 classifiers (reference), less than 1 (perfect), undecided against 0" in text
    assert "At scale 2 its rank is 2 (2 to 2) of 3" in text
    assert "| accuracy at scale 2 | 24 | 0.500 |" in text and "2 of 3 |" in text
    head = text.splitlines().index("| quantity | n | estimate | interval | others, median | place |")
    rows = [row.split(" | ")[0] for row in text.splitlines()[head + 2 : head + 2 + len(found.summary)]]
    assert text.startswith("# mine\n\n") and rows == [f"| {quantity}" for quantity in found.summary["quantity"]]
    assert {path.name for path in folder.iterdir()} >= {"report.png", "report.csv", "predictions.parquet"}
    for kind, table in found.tables.items():
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{kind}.csv"), table.reset_index(drop=True), rtol=1e-5, check_dtype=False)
    assert len(tables.read(folder / "predictions.parquet", tables.predictions)) == 2 * 6 * (1 + 2 * 2)


def test_a_timm_module_brings_its_own_transform(benchmark):
    model = timm.create_model("resnet10t", num_classes=3)
    classifier = classifiers.own_classifier(model, name="mine", labels=LABELS)
    assert classifier.settings["mean"] == model.pretrained_cfg["mean"] and not any(p.requires_grad for p in model.parameters())


def test_a_transformers_directory_answers_as_the_library_does(tmp_path):
    config = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, num_labels=3)
    model = ViTForImageClassification(config).eval()
    processor = ViTImageProcessor(size={"height": 32, "width": 32})
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    picture = np.random.default_rng(1).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    with torch.no_grad():
        expected = model(processor(picture[0], return_tensors="pt")["pixel_values"]).logits
    own = classifiers.own_classifier(f"transformers:{tmp_path}", name="mine", labels=LABELS)
    assert torch.allclose(own.logits(picture), expected, atol=1e-3)  # a pixel of the resized picture may be rounded the other way


@pytest.mark.parametrize(
    ("model", "changes", "said"),
    [
        (Brightness(0.5), {"transform": None}, "transform: None"),
        (Brightness(0.5), {"labels": ["bag", "sneaker"]}, r"outputs of shape \(1, 3\)"),
        (Brightness(0.5), {"labels": ["bag", "coat", "dress"]}, "base.classes: 'sneaker'"),
        (Brightness(0.5), {"name": "perfect"}, "name: 'perfect'"),
        (Brightness(float("nan")), {}, "not finite"),
        (print, {}, "model: <built-in function print>"),
        ("timm:resnet10t", {}, "transform"),
        ("transformers:nowhere/to/be/found", {"transform": None}, "cannot be loaded"),
        ("data/models/nobody", {"transform": None}, "does not exist"),
    ],
)
def test_one_clear_error_says_what_is_accepted(benchmark, model, changes, said):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        report.report(model, **{"name": "mine", "transform": TRANSFORM, "on": benchmark, **changes})


def test_the_command_line_names_what_is_missing(tmp_path, capsys):
    wrong = tmp_path / "labels.json"
    wrong.write_text(json.dumps(["bag", "bag"]))
    assert report.main(["timm:resnet10t", "--labels", str(wrong)]) == 2
    assert "not a list of distinct names" in capsys.readouterr().err


OUTPUTS = json.loads(paths.resolve("data/models/labels.json").read_text())
INFO = dict.fromkeys(official.INFO, "tiny")


@pytest.fixture(scope="module")
def folder(benchmark, tmp_path_factory):
    """The benchmark in the published layout, numbered by the mini world's labels, with the others' answers beside it."""
    place = tmp_path_factory.mktemp("exported")
    images = next(iter(benchmark.shards)).parent
    official.export_benchmark(images, benchmark.kept, place / "tiny_bench", labels=OUTPUTS, info=INFO)
    answers.export_answers(benchmark.answers, benchmark.kept, place / "results.zip", labels=OUTPUTS, form="png")
    return place / "tiny_bench"


def mine() -> Brightness:
    """The same answers with one output for each label of the mini world."""

    class Wide(Brightness):
        def forward(self, pixels):
            few = super().forward(pixels)
            return torch.stack([few[:, LABELS.index(name)] if name in CLASSES else few[:, 2] - 1 for name in OUTPUTS], dim=1)

    return Wide(0.5)


def test_an_exported_folder_gives_the_numbers_of_the_benchmark_itself(folder, found):
    on = dataclasses.replace(report.exported(folder), settings=SETTINGS)
    other = report.report(mine(), name="mine", transform=TRANSFORM, on=on)
    assert on.models == ["perfect", "reference"] and on.labels == OUTPUTS
    laid = report.exported(folder, overlay="smoke.yaml").settings
    assert laid.bootstrap == read.load(paths.resolve("params.yaml"), paths.resolve("smoke.yaml"))["accuracy"].bootstrap
    assert laid.bootstrap != report.exported(folder).settings.bootstrap
    for kind, table in found.tables.items():
        pd.testing.assert_frame_equal(other.tables[kind], table)


def test_without_the_answers_of_others_the_report_speaks_of_one_classifier_alone(folder, tmp_path):
    alone = tmp_path / "alone"
    folder.rename(alone)
    try:
        on = dataclasses.replace(report.exported(alone), settings=SETTINGS)
        single = report.report(mine(), name="mine", transform=TRANSFORM, on=on)
    finally:
        alone.rename(folder)
    assert on.models == [] and not {"rank", "pairs", "ce", "rce"} & set(single.tables)
    assert "rank" not in single.text() and "| accuracy at scale 2 | 24 | 0.500 |" in single.text()
    assert (single.save(tmp_path / "report") / "report.png").exists()


def test_names_of_curves_end_well_before_the_shifts_beside_them_begin(found):
    figure = found.figure()
    figure.draw_without_rendering()
    left, right = figure.axes[2:4]
    ends = [text.get_window_extent().x1 for text in left.texts]
    begins = [text.get_window_extent().x0 for text in right.get_yticklabels()]
    assert ends and min(begins) - max(ends) > 0.25 * figure.dpi
    plt.close(figure)


def named(folder, *names: str) -> archives.Archive:
    """An archive with one image in each class folder."""
    return archives.Archive(folder, [f"heavy_snow/{name}/seed_0001_scale_0000.jpg" for name in names], lambda name: b"")


def test_class_folders_are_numbered_by_the_labels_that_fit(tmp_path):
    assert report.labels_of(named(tmp_path, "000_t-shirt", "007_ankle boot"), OUTPUTS) == OUTPUTS
    assert report.labels_of(named(tmp_path, "000_tench", "009_ostrich"), OUTPUTS) == list(imagenet.labels())
    for folder, said in (("ostrich", "022_bald eagle"), ("1000_nobody", "1,000 classes")):
        with pytest.raises(ValueError, match=f"class folders.*{said}"):
            report.labels_of(named(tmp_path, folder), OUTPUTS)


def test_answers_to_other_images_are_named(folder, benchmark, tmp_path):
    fewer = benchmark.kept[benchmark.kept["seed"] > 1]
    answers.export_answers(benchmark.answers, fewer, tmp_path / "results.zip", labels=OUTPUTS, form="png")
    with pytest.raises(ValueError, match=r"answers of .*results\.zip to the images: 4 rows missing"):
        report.exported(folder, results=tmp_path / "results.zip")
    assert report.main(["timm:resnet10t", "--data", str(tmp_path / "nothing")]) == 2


class Spoken:
    """A report that says what it was made from and is written nowhere."""

    def __init__(self, *made_from):
        self.made_from = made_from

    def text(self):
        return repr(self.made_from)

    def save(self, folder):
        return f"folder {folder}"


@pytest.fixture
def handed(monkeypatch):
    """What the command line hands to the functions that it calls."""
    calls = {}
    monkeypatch.setattr(report, "benchmark", lambda **given: calls.update(benchmark=given) or "own")
    monkeypatch.setattr(report, "exported", lambda *where, **given: calls.update(exported=(*where, given)) or "exported")
    monkeypatch.setattr(report, "report", lambda source, **given: calls.update(report=(source, given)) or Spoken(given["on"]))
    return calls


def test_the_command_line_without_options_takes_the_benchmark_as_it_is(handed, capsys):
    assert report.main(["timm:resnet10t"]) == 0
    assert handed["benchmark"] == {"data": "images", "params": "params.yaml", "overlay": None} and "exported" not in handed
    assert handed["report"] == ("timm:resnet10t", {"name": "yours", "labels": None, "on": "own", "device": "cpu"})
    assert capsys.readouterr().out == f"('own',)\nwritten to folder {paths.resolve('build/report/yours')}\n"


def test_the_command_line_hands_every_option_on(handed, tmp_path, capsys):
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    options = {"name": "mine", "labels": tmp_path / "labels.json", "params": "a.yaml", "overlay": "b.yaml", "data": tmp_path / "c.zip"}
    options |= {"results": tmp_path / "d.zip", "device": "cuda", "folder": tmp_path / "e"}
    assert report.main(["timm:resnet10t", *(word for key, value in options.items() for word in (f"--{key}", str(value)))]) == 0
    assert handed["exported"] == (tmp_path / "c.zip", {"results": tmp_path / "d.zip", "params": "a.yaml", "overlay": "b.yaml"})
    assert handed["report"] == ("timm:resnet10t", {"name": "mine", "labels": LABELS, "on": "exported", "device": "cuda"})
    assert capsys.readouterr().out == f"('exported',)\nwritten to folder {tmp_path / 'e'}\n" and "benchmark" not in handed
    assert report.main(["timm:resnet10t", "--data", "photos"]) == 0 and handed["benchmark"]["data"] == "photos"


def test_the_benchmark_is_that_of_the_parameters_and_of_what_is_laid_over_them(monkeypatch):
    monkeypatch.setattr(report, "MAKERS", {"images": lambda sections: sections, "photos": lambda sections: "photos"})
    assert report.benchmark() == read.load(paths.resolve("params.yaml"), None)
    smoke = read.load(paths.resolve("params.yaml"), paths.resolve("smoke.yaml"))
    assert report.benchmark("params.yaml", "smoke.yaml") == smoke != report.benchmark()
    assert report.benchmark(data="photos") == "photos"
    with pytest.raises(ValueError, match=r"^data: 'films' is not accepted; accepted: images, photos$"):
        report.benchmark(data="films")


def test_the_generated_images_are_those_of_the_parameters_grid(benchmark, monkeypatch):
    """Tables, kept trajectories and answers of a run whose folder is that of the fixture."""
    layout = SimpleNamespace(artifacts={"generation": next(iter(benchmark.shards)).parent}.get)
    base = SimpleNamespace(shifts=SHIFTS, classes=CLASSES, scales=SCALES, seeds=len(SEEDS), labels="labels.json")
    run, stored = SimpleNamespace(base=base, layout=layout), benchmark.answers.astype(dict.fromkeys(tables.TEXTS, "category"))
    monkeypatch.setattr(report.artifacts, "kept", lambda given: benchmark.kept if given is run else None)
    monkeypatch.setattr(report.artifacts, "answers", lambda given: stored if given is run else None)
    monkeypatch.setattr(report.encoders, "read_labels", {"labels.json": LABELS}.get)
    found = report.of_images(run, batch_size=7, settings=SETTINGS)
    assert found.shards == benchmark.shards and found.kept is benchmark.kept
    pd.testing.assert_frame_equal(found.answers, benchmark.answers)
    assert (found.labels, found.batch_size, found.settings, found.folder) == (LABELS, 7, SETTINGS, None)
    with pytest.raises(FileNotFoundError, match="image table"):
        more = SimpleNamespace(**vars(base) | {"shifts": [*SHIFTS, "heavy fog"]})
        report.of_images(SimpleNamespace(base=more, layout=layout), batch_size=7, settings=SETTINGS)


def test_answers_are_kept_where_a_folder_is_given_and_are_the_same(benchmark, found, tmp_path):
    keeping = dataclasses.replace(benchmark, folder=tmp_path)
    again = report.report(Brightness(0.5), name="mine", transform=TRANSFORM, on=keeping)
    expected = found.predictions.sort_values(["model", *tables.KEY], ignore_index=True)
    pd.testing.assert_frame_equal(again.predictions, expected[again.predictions.columns])
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["mine.parquet"]


def test_the_sections_of_a_file_give_the_run_of_its_generated_images(monkeypatch):
    sections = read.load(paths.resolve("params.yaml"), None)
    monkeypatch.setattr(report, "of_images", lambda run, **given: (run, given))
    run, given = report.generated(sections)
    assert (run.layout.step, run.base) == ("report", sections["base"])
    assert given == {"batch_size": sections["evaluation"].batch_size, "settings": sections["accuracy"]}


def test_every_cut_out_under_every_shift_is_a_trajectory_of_the_photo_set(tmp_path, monkeypatch):
    sections = read.load(paths.resolve("params.yaml"), None)
    base = dataclasses.replace(sections["base"], out=str(tmp_path), shifts=SHIFTS)
    objects = [SimpleNamespace(label="tench", seed=1), SimpleNamespace(label="ostrich", seed=2)]
    keys = [
        (shift, own.label, own.seed, scale)
        for shift in (UNSHIFTED, *SHIFTS)
        for own in objects
        for scale in ([0.0], [0.5])[shift != UNSHIFTED]
    ]
    others = pd.DataFrame(keys, columns=tables.KEY).assign(model="other", top1="tench", top5=[["tench"]] * len(keys))
    others = others.assign(probability=0.5, margin=0.0, preprocessing="model")
    for shift, rows in others.groupby("shift"):
        tables.write(rows, tmp_path / "artifacts" / "photos" / f"{identifier(shift)}.parquet", tables.predictions)
    monkeypatch.setattr(report.photos, "chosen", lambda *given: objects if given == (paths.PHOTOS, sections["photos"]) else [])
    monkeypatch.setattr(report.photos, "ask", lambda *given, settings: (*given, settings))
    found = report.photo_set(sections | {"base": base})
    assert found.kept.to_numpy().tolist() == [[shift, own.label, own.seed] for shift in SHIFTS for own in objects]
    assert list(found.kept) == tables.TRAJECTORY and found.models == ["other"] and len(found.answers) == len(keys)
    assert all(isinstance(value, str) for name in ("shift", "class", "top1") for value in found.answers[name])
    assert (found.shards, found.labels, found.batch_size) == ({}, list(imagenet.labels()), 1)
    assert found.settings == Accuracy(sections["photos"].bootstrap, sections["photos"].reference)
    assert found.ask("mine") == (["mine"], objects, (UNSHIFTED, *SHIFTS), sections["photos"])


def test_a_row_of_the_summary_says_open_where_a_bound_is_missing_and_nothing_of_others_where_there_are_none():
    row = SimpleNamespace(quantity="CE", n=9, estimate=0.5, low=0.25, high=0.75, others=0.6, place=2, of=3)
    assert report.line(row) == "| CE | 9 | 0.500 | 0.250 to 0.750 | 0.600 | 2 of 3 |"
    for name in ("low", "high"):
        assert "| open |" in report.line(SimpleNamespace(**vars(row) | {name: np.nan}))
    assert report.line(SimpleNamespace(**vars(row) | {"of": 1})) == "| CE | 9 | 0.500 | 0.250 to 0.750 |  |  |"


def test_others_are_named_where_they_are_few():
    pairs = pd.DataFrame({"second": list("abcdefg")})
    assert report.listed(pairs[:6]) == " (a, b, c, d, e, f)" and report.listed(pairs[:0]) == report.listed(pairs) == ""
