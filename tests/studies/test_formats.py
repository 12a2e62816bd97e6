"""A report in the formats of others: their libraries and schemas read it, and it says what the report says."""

import datetime
import hashlib
import json
import re

import mlcroissant
import pandas as pd
import pytest
import tiny_report
from huggingface_hub import parse_eval_result_entries
from ruamel.yaml import YAML
from tiny_report import CLASSES, SCALES, SEEDS, SHIFTS, TRANSFORM, Brightness

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.studies import formats, report

WHEN = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
# What evaleval/every_eval_ever demands (eval.schema.json and instance_level_eval.schema.json, both 0.3.0): entries and their types, at
# any depth, a pattern as text, and whether there may be others.
UUID = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}"
JOIN = {"schema_version": "^0.3.0$", "evaluation_id": str}
MEASURED = {"evaluation_name": str, "source_data": {"dataset_name": str, "source_type": "^other$"}}
MEASURED |= {"metric_config": {"lower_is_better": bool, "score_type": "^continuous$"}, "score_details": {"score": float}}
SOURCE = {"source_type": "^(documentation|evaluation_run)$", "source_organization_name": str}
SOURCE |= {"evaluator_relationship": "^(first_party|third_party|collaborative|other)$"}
SERVED = {
    "deployment_type": "^(self_deployed|externally_managed|unknown)$",
    "model_availability": "^(open_weights|closed_weights|unknown)$",
}
LOG = {**JOIN, "retrieved_timestamp": str, "source_metadata": SOURCE, "evaluation_results": [MEASURED]}
LOG |= {"model_info": {"name": str, "id": str, "additional_details": SERVED}, "eval_library": {"name": str, "version": str}}
FILE = rf"^data/[^/]+/[^/]+/[^/]+/{UUID}_samples\.jsonl$"
LOG |= {"detailed_evaluation_results": {"format": "^jsonl$", "file_path": FILE, "hash_algorithm": "^(sha256|md5)$", "total_rows": int}}
ANSWER = {"turn_idx": int, "source": str, "extracted_value": str, "extraction_method": str, "is_terminal": bool}
INSTANCE = {**JOIN, "model_id": str, "evaluation_name": str, "sample_id": str, "interaction_type": "^single_turn$", "messages": None}
INSTANCE |= {"input": {"raw": str, "reference": [str]}, "output": {"raw": [str]}, "answer_attribution": [ANSWER]}
INSTANCE |= {"evaluation": {"score": float, "is_correct": bool}}


def meets(value, demanded) -> bool:
    if isinstance(demanded, dict):
        return demanded.keys() <= value.keys() and all(meets(value[key], part) for key, part in demanded.items())
    if isinstance(demanded, list):
        return isinstance(value, list) and all(meets(part, demanded[0]) for part in value)
    if isinstance(demanded, str):
        return re.search(demanded, value) is not None
    return value is None if demanded is None else isinstance(value, (int, float) if demanded is float else demanded)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory) -> report.Benchmark:
    return tiny_report.benchmark(tmp_path_factory.mktemp("generation"))


@pytest.fixture(scope="module")
def found(benchmark):
    return report.report(Brightness(0.5), name="mine", transform=TRANSFORM, on=benchmark)


@pytest.fixture(scope="module")
def folder(found, benchmark, tmp_path_factory):
    place = found.save(tmp_path_factory.mktemp("mine"))
    formats.write(found, benchmark, place, when=WHEN)
    return place


def test_every_eval_ever_has_every_accuracy_with_its_interval_and_instances_that_add_up_to_it(folder, found):
    (path,) = folder.rglob("*/local/mine/*.json")
    log = json.loads(path.read_text())
    assert meets(log, LOG) and log.keys() == LOG.keys()
    details = log["detailed_evaluation_results"]
    data = (folder / details["file_path"]).read_bytes()
    lines = [json.loads(line) for line in data.splitlines()]
    for line in lines:
        assert meets(line, INSTANCE) and line.keys() - INSTANCE.keys() == {"evaluation_result_id"}
        assert line["evaluation_id"] == log["evaluation_id"] and line["model_id"] == log["model_info"]["id"]
    assert details["checksum"] == hashlib.sha256(data).hexdigest()
    assert details["total_rows"] == len(lines) == len(SHIFTS) * len(CLASSES) * len(SEEDS) * len(SCALES)
    measured = {one["evaluation_name"]: one["score_details"] for one in log["evaluation_results"]}
    assert measured["accuracy, all shifts, scale 2"]["score"] == 0.5 and measured["never failed"]["score"] == 0.5
    for shift in SHIFTS:
        for scale, share in zip(SCALES, [1.0, 1.0, 0.5], strict=True):
            name = f"accuracy, {shift}, scale {scale:g}"
            scores = [line["evaluation"]["score"] for line in lines if line["evaluation_name"] == name]
            assert len(scores) == 12 and sum(scores) / 12 == measured[name]["score"] == share
    row = found.tables["accuracy"].query("model == 'mine' and shift == 'all shifts' and scale == 2").iloc[0]
    ends = measured["accuracy, all shifts, scale 2"]["uncertainty"]["confidence_interval"]
    assert (ends["lower"], ends["upper"], ends["confidence_level"]) == (row["low"], row["high"], 0.95)


def test_the_same_report_and_time_give_the_same_bytes(folder, found, benchmark, tmp_path):
    formats.write(found, benchmark, tmp_path, when=WHEN)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 3 + len(SCALES) and all((folder / path).read_bytes() == (tmp_path / path).read_bytes() for path in written)


def test_hugging_faces_own_reader_reads_the_eval_results(folder):
    entries = parse_eval_result_entries(YAML(typ="safe").load(folder / ".eval_results" / "tiny_bench.yaml"))
    assert [(entry.task_id, entry.value) for entry in entries] == [
        (f"accuracy_scale_{scale:g}", 1.0 - 0.25 * scale * (scale == 2)) for scale in SCALES
    ]
    assert entries[0].dataset_id == "local/tiny_bench" and entries[0].date == "2026-01-02" and entries[2].notes.startswith("n = 24, ")


def test_results_csv_has_timms_columns_in_percent(folder):
    table = pd.read_csv(folder / "results-tiny_bench-scale-2.csv")
    columns = ["model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation"]
    assert table.columns.tolist() == columns  # of results-imagenet.csv, timm 1.0
    assert table.loc[0, ["model", "img_size", "top1", "top1_err", "top5", "top5_err"]].tolist() == ["mine", 64, 50, 50, 100, 0]


def test_croissant_reads_the_predictions_and_their_card(found, benchmark, tmp_path):
    about = read.load(paths.resolve("params.yaml"))["dataset"]
    found.save(tmp_path)
    formats.write(found, report.dataclasses.replace(benchmark, about=about), tmp_path, when=WHEN)
    card = json.loads((tmp_path / "croissant.json").read_text())
    assert card["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
    assert {"rai:dataCollection", "rai:dataBiases", "rai:dataLimitations", "rai:personalSensitiveInformation"} <= card.keys()
    data = mlcroissant.Dataset(jsonld=str(tmp_path / "croissant.json"))
    assert not data.metadata.ctx.issues.errors and not data.metadata.ctx.issues.warnings
    records = list(data.records(record_set="predictions"))
    assert len(records) == len(found.predictions) and records[0]["predictions/model"] == b"mine"
