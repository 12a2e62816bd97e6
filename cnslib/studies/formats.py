"""A report in the formats of others: Every Eval Ever 0.3.0, Hugging Face's .eval_results, Croissant, the columns of timm's results.

They hold what the report measured on the kept trajectories. The same report and the same time `when` give the same bytes.
"""

import datetime
import hashlib
import io
import json
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pandas as pd
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from PIL import Image
from ruamel.yaml import YAML

from cnslib.core import units
from cnslib.core.names import identifier
from cnslib.data import artifacts, croissant
from cnslib.models.classifiers import Classifier
from cnslib.stats.accuracy import ALL
from cnslib.studies.report import Benchmark, Report

SCHEMA = "0.3.0"  # of Every Eval Ever
SERVED = {"deployment_type": "self_deployed", "model_availability": "unknown"}  # which it demands
ACCURACY: dict[str, Any] = {"lower_is_better": False, "min_score": 0, "max_score": 1}
METRICS: dict[str, dict[str, Any]] = {  # by how a quantity of the summary begins; bounds as JSON has them
    "accuracy drop": {"lower_is_better": True, "min_score": -1, "max_score": 1},
    "CE": {"lower_is_better": True, "min_score": 0, "max_score": "Infinity"},
    "rCE": {"lower_is_better": True, "min_score": "-Infinity", "max_score": "Infinity"},
    "never failed": ACCURACY,
    "median failure": {"lower_is_better": False, "min_score": 0, "max_score": "Infinity"},
}


def write(report: Report, on: Benchmark, folder: Path, *, when: datetime.datetime) -> None:
    """Writes all formats into the folder of a report (docs/report.md tells their names)."""
    rows = artifacts.of_kept(report.predictions, on.kept, "predictions of kept trajectories")
    bench, results = identifier(on.title), []
    accuracies = report.tables["accuracy"][report.tables["accuracy"]["model"] == report.name]
    for row in accuracies[accuracies["shift"] == ALL].itertuples(index=False):
        notes = f"n = {row.n}, {row.low:.4f} to {row.high:.4f}, {report.settings.interval_note}"
        task = f"accuracy_scale_{row.scale:g}"
        results.append(EvalResultEntry(f"local/{bench}", task, row.estimate, date=when.date().isoformat(), notes=notes))
    every_eval_ever(report, rows, on.title, folder, when)
    YAML().dump(eval_result_entries_to_yaml(results), stream := io.BytesIO())
    units.write_bytes(folder / ".eval_results" / f"{bench}.yaml", stream.getvalue())
    for scale, part in rows.groupby("scale"):
        units.write_bytes(folder / f"results-{bench}-scale-{scale:g}.csv", timm_row(report, part).to_csv(index=False).encode())
    if on.about:
        about = {"name": f"{report.name} on {on.title}", "description": f"Predictions of {report.name}. {on.about.description}"}
        files = {"predictions": folder / "predictions.parquet"}
        croissant.write(folder / "croissant.json", files, about=vars(on.about) | about)


def timm_row(report: Report, rows: pd.DataFrame) -> pd.DataFrame:
    """One line under the columns of timm's results-imagenet.csv; what the model does not say of itself stays empty."""
    model = cast(Classifier, report.classifier)
    top1 = 100 * (rows["top1"] == rows["class"]).mean()
    top5 = 100 * sum(name in five for name, five in zip(rows["class"], rows["top5"], strict=True)) / len(rows)
    line = {"model": report.name, "img_size": model.transform(Image.new("RGB", (64, 64))).shape[-1]}
    line |= {"top1": top1, "top1_err": 100 - top1, "top5": top5, "top5_err": 100 - top5, "param_count": model.parameters / 1e6 or ""}
    return pd.DataFrame([line | {key: model.settings.get(key, "") for key in ("crop_pct", "interpolation")}]).round(3)


def every_eval_ever(report: Report, rows: pd.DataFrame, title: str, folder: Path, when: datetime.datetime) -> None:
    """The aggregate record and the file of instances that it names, where the format wants them: data/<collection>/local/<model>/.

    Source: https://github.com/evaleval/every_eval_ever, eval.schema.json and instance_level_eval.schema.json.
    """
    bench, model = identifier(title), f"local/{identifier(report.name)}"
    stamp = str(int(when.timestamp()))
    identity = f"{bench}/{model}/{stamp}"
    name = uuid.UUID(bytes=hashlib.sha256(f"{identity} {report.summary.to_csv()}".encode()).digest()[:16], version=4)
    place = Path("data", bench, model, f"{name}_samples.jsonl")
    join = {"schema_version": SCHEMA, "evaluation_id": identity}
    lines = "".join(json.dumps({**join, "model_id": model, **instance(row)}) + "\n" for row in rows.to_dict("records")).encode()
    units.write_bytes(folder / place, lines)
    measured = [
        (called(row.shift, row.scale), row, ACCURACY)
        for row in report.tables["accuracy"].query("model == @report.name").itertuples(index=False)
    ]
    for row in report.summary.itertuples(index=False):
        measured += [(row.quantity, row, metric) for start, metric in METRICS.items() if row.quantity.startswith(start)]
    details = {"format": "jsonl", "file_path": place.as_posix(), "hash_algorithm": "sha256", "total_rows": len(rows)}
    record = {
        **join,
        "retrieved_timestamp": stamp,
        "source_metadata": {"source_type": "evaluation_run", "source_organization_name": "local", "evaluator_relationship": "other"},
        "eval_library": {"name": "cnslib", "version": version("cnslib")},
        "model_info": {"name": report.name, "id": model, "additional_details": {**SERVED, "preprocessing": report.about}},
        "evaluation_results": [result(*one, title, report) for one in measured if abs(one[1].estimate) < float("inf")],
        "detailed_evaluation_results": details | {"checksum": hashlib.sha256(lines).hexdigest()},
    }
    units.write_bytes(folder / place.with_name(f"{name}.json"), (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def called(shift: str, scale: float) -> str:
    """What an evaluation is called, and how its instances name it."""
    return f"accuracy, {shift}, scale {scale:g}"


def result(name: str, row: Any, metric: dict, title: str, report: Report) -> dict[str, Any]:
    """One measured number with its interval, if it has one."""
    uncertainty: dict[str, Any] = {"num_samples": int(row.n), "num_bootstrap_samples": report.settings.resamples}
    if abs(row.low) + abs(row.high) < float("inf"):
        ends = {
            "lower": row.low,
            "upper": row.high,
            "confidence_level": report.settings.confidence,
            "method": report.settings.interval_note,
        }
        uncertainty["confidence_interval"] = ends
    return {
        "evaluation_result_id": identifier(name),
        "evaluation_name": name,
        "source_data": {"dataset_name": title, "source_type": "other"},
        "metric_config": {"score_type": "continuous", **metric},
        "score_details": {"score": row.estimate, "uncertainty": uncertainty},
    }


def instance(row: dict[str, Any]) -> dict[str, Any]:
    """One picture, what it shows, and the prediction."""
    name, label, said = called(row["shift"], row["scale"]), row["class"], row["top1"]
    picture = f"{row['shift']}/{label}/seed {row['seed']}/scale {row['scale']:g}"
    answer = {"turn_idx": 0, "source": "output.raw", "extracted_value": said, "extraction_method": "argmax", "is_terminal": True}
    return {
        **{"evaluation_name": name, "evaluation_result_id": identifier(name), "sample_id": picture, "interaction_type": "single_turn"},
        **{"input": {"raw": picture, "reference": [label]}, "output": {"raw": [said]}, "messages": None},
        **{"answer_attribution": [answer], "evaluation": {"score": float(said == label), "is_correct": said == label}},
    }
