import base64
import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import tiny_report
import torch
from bs4 import BeautifulSoup
from tiny_report import CLASSES, LABELS, SCALES, SETTINGS, TRANSFORM, Brightness

from cnslib.core import paths, tables
from cnslib.core.settings import read
from cnslib.data import archives, authors, official
from cnslib.stats import accuracy
from cnslib.studies import report
from cnslib.tools import report as command


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> report.Benchmark:
    return tiny_report.benchmark(tmp_path_factory.mktemp("generation"))


@pytest.fixture(scope="module")
def found(benchmark) -> report.Report:
    """At threshold 0.5 a bag at scale 2 (90 of 255) is called a sneaker; everything else is right."""
    return report.report(Brightness(0.5), name="mine", transform=TRANSFORM, on=benchmark)


def estimate(table: pd.DataFrame, model: str = "mine", shift: str = accuracy.ALL, **keys) -> float:
    for key, value in {"model": model, "shift": shift, **keys}.items():
        table = table[table[key] == value]
    (row,) = table["estimate"]
    return row


def test_every_table_is_what_one_counts_by_hand(found, benchmark):
    assert [estimate(found.tables["accuracy"], scale=scale) for scale in SCALES] == [1.0, 1.0, 0.5]
    assert [estimate(found.tables["survival"], scale=scale) for scale in SCALES] == [1.0, 1.0, 0.5]
    assert estimate(found.tables["never"]) == 0.5
    assert np.isnan(estimate(found.tables["rce"], shift=accuracy.MEAN))  # two trajectories per shift, and the rule asks for 50
    pairs = found.tables["pairs"].query("scale == 2").set_index("second")
    assert pairs["first"].eq("mine").all() and pairs["estimate"].to_dict() == {"perfect": -0.5, "reference": 0.5}
    fewer = dataclasses.replace(benchmark, kept=benchmark.kept[benchmark.kept["seed"] > 1])
    assert set(report.compare(found.predictions, fewer).tables["accuracy"]["n"]) == {10, 20}  # under one shift, under both
    summary = found.summary.set_index("quantity")
    assert summary.loc["accuracy at scale 2", ["estimate", "place", "of"]].tolist() == [0.5, 2, 3]
    names = ["accuracy at scale 0", "accuracy at scale 2", "accuracy drop at scale 2", "CE", "rCE", "never failed", "median failure scale"]
    assert summary.index.tolist() == names


def test_predictions_of_a_classifier_without_files_are_kept_and_the_same(found, benchmark, tmp_path):
    given = {"shards": benchmark.predict.keywords["shards"], "batch_size": 4, "folder": tmp_path}
    both = report.cached(found.classifier, **given), found.predictions
    own, beside = (table.astype({"shift": str, "class": str}).set_index(tables.KEY)["margin"].sort_index() for table in both)
    pd.testing.assert_series_equal(own, beside)


def test_the_benchmark_is_that_of_the_parameters(tmp_path):
    run = read.Run("report", read.load(paths.resolve("params.yaml")), ())
    assert report.benchmark().predict.keywords["batch_size"] == run.evaluation.batch_size
    assert report.of_images(run, batch_size=2, settings=run.accuracy, folder=tmp_path).predict.keywords["folder"] == tmp_path


def test_differences_are_ones_own_accuracy_minus_that_of_each_other():
    pairs = {"first": ["a", "a", "mine"], "second": ["mine", "z", "z"], "scale": 1.0, "n": 9, "p": [0.01, 0.5, 0.03]}
    pairs |= {"estimate": [0.2, 0.4, 0.3], "low": [0.1, 0.3, 0.2], "high": [0.5, 0.6, 0.4], "p_holm": 1.0}
    table = report.differences(pd.DataFrame(pairs), "mine")
    assert table[["first", "second"]].T.to_dict("list") == {0: ["mine", "a"], 1: ["mine", "z"]}
    assert table[["estimate", "low", "high"]].to_numpy().tolist() == [[-0.2, -0.5, -0.1], [0.3, 0.2, 0.4]]
    assert table["p_holm"].tolist() == pytest.approx([0.02, 0.03])  # two comparisons are this one's own


@pytest.mark.parametrize(("better", "places"), [(1, [1, 2, 2, 4]), (-1, [4, 2, 2, 1])])
def test_a_place_is_one_more_than_the_number_of_better_ones(better, places):
    table = pd.DataFrame({"model": list("abcd"), "n": 9, "estimate": [0.9, 0.7, 0.7, 0.3], "low": 0.0, "high": 1.0})
    found = [report.placed(table, name, better=better) for name in "abcd"]
    assert [row["place"] for row in found] == places and {row["of"] for row in found} == {4}
    assert [row["others"] for row in found] == [0.7, 0.7, 0.7, 0.7]


def test_the_report_is_written_and_says_what_the_tables_say(found, tmp_path):
    folder = found.save(tmp_path / "mine")
    text = (folder / "report.md").read_text()
    assert "At scale 2 it is more accurate than reference, less than perfect (of 2;" in text
    assert text.startswith("# mine\n\n") and "| accuracy at scale 2 | 24 | 0.500 |" in text and "2 of 3 |" in text
    assert {path.name for path in folder.iterdir()} >= {"report.png", "report.csv", "predictions.parquet"}
    page, picture = (folder / "report.html").read_text(), base64.b64encode((folder / "report.png").read_bytes()).decode()
    rows = BeautifulSoup(page, "html.parser").find("table").find_all("tr")[1:]
    assert [row.find_all("td")[0].text for row in rows] == found.summary["quantity"].tolist() and picture in page
    assert "<script>" not in report.page("<script>", "| <script> |\n|---|", b"")
    for kind, table in found.tables.items():
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{kind}.csv"), table.reset_index(drop=True), rtol=1e-5, check_dtype=False)
    assert len(tables.read(folder / "predictions.parquet", tables.predictions)) == 2 * 6 * (1 + 2 * 2)


@pytest.mark.parametrize(
    ("model", "changes", "said"),
    [
        (Brightness(0.5), {"transform": None}, "transform: None"),
        (Brightness(0.5), {"labels": ["bag", "coat", "dress"]}, "base.classes: 'sneaker'"),
        (Brightness(0.5), {"name": "perfect"}, "name: 'perfect'"),
        ("timm:resnet10t", {}, "transform"),
        ("transformers:nowhere/to/be/found", {"transform": None}, "cannot be loaded"),
    ],
)
def test_one_clear_error_says_what_is_accepted(benchmark, model, changes, said):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        report.report(model, **{"name": "mine", "transform": TRANSFORM, "on": benchmark, **changes})


OUTPUTS = json.loads(paths.resolve("data/models/labels.json").read_text())
INFO = {"version": "tiny"}


@pytest.fixture(scope="module")
def folder(benchmark, tmp_path_factory):
    """The benchmark in the published layout, numbered by the mini world's labels, with the others' predictions beside it."""
    place = tmp_path_factory.mktemp("exported")
    images = next(iter(benchmark.predict.keywords["shards"])).parent
    archives.write(place / "tiny_bench", official.exported(images, benchmark.kept, OUTPUTS, INFO))
    authors.export_predictions(benchmark.predictions, benchmark.kept, place / "results.zip", labels=OUTPUTS)
    return place / "tiny_bench"


def mine() -> Brightness:
    class Wide(Brightness):
        def forward(self, pixels):
            few = super().forward(pixels)
            return torch.stack([few[:, LABELS.index(name)] if name in CLASSES else few[:, 2] - 1 for name in OUTPUTS], dim=1)

    return Wide(0.5)


def test_an_exported_folder_gives_the_numbers_of_the_benchmark_itself(folder, found):
    on = dataclasses.replace(command.exported(folder), settings=SETTINGS)
    other = report.report(mine(), name="mine", transform=TRANSFORM, on=on)
    assert on.models == ["perfect", "reference"] and on.labels == OUTPUTS
    laid = command.exported(folder, overlay="smoke.yaml").settings
    assert laid.bootstrap == read.load(paths.resolve("params.yaml"), paths.resolve("smoke.yaml"))["accuracy"].bootstrap
    assert laid.bootstrap != command.exported(folder).settings.bootstrap
    for kind, table in found.tables.items():
        pd.testing.assert_frame_equal(other.tables[kind], table)


def test_predictions_of_other_images_are_named(folder, benchmark, tmp_path):
    fewer = benchmark.kept[benchmark.kept["seed"] > 1]
    authors.export_predictions(benchmark.predictions, fewer, tmp_path / "results.zip", labels=OUTPUTS)
    with pytest.raises(ValueError, match=r"predictions of .*results\.zip to the images: 4 rows missing"):
        command.exported(folder, results=tmp_path / "results.zip")
    assert command.main(["timm:resnet10t", "--data", str(tmp_path / "nothing")]) == 2
