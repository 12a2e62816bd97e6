"""The published tables, one row per printed number or cell, read from published/<paper>_<table>.csv and checked.

Papers: cns (CNS-Bench, ICCV 2025), cns2024 (its earlier submission with supplement), control_shift, ximagenet12; timm holds the
library's own validation accuracies. Numbers stand as printed: a column that ends in _percent is in percent, all other shares are in [0, 1].
"""

import pandas as pd
import pandera.pandas as pa
from statsmodels.stats.proportion import proportion_confint

from cnslib.core import paths, tables

SHARE, PERCENT, SIZE, TEXT = pa.Check.in_range(0, 1), pa.Check.in_range(0, 100), pa.Check.ge(0), pa.Check.str_length(min_value=1)
SCALES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
SCALE = pa.Column(float, pa.Check.isin(SCALES))
ORIGIN = {"source": pa.Column(str, TEXT), "note": pa.Column(str)}
SCENARIOS = ("blur_background", "blur_object", "color_g", "color_b", "color_grey", "color_r", "random_background", "segmented_image")


def kind(key: list[str], **columns: pa.Column) -> pa.DataFrameSchema:
    """A schema whose texts are the key, unless a column says otherwise, and that ends in source and note."""
    return tables.schema(key, {**{name: pa.Column(str, TEXT) for name in key}, **columns, **ORIGIN})


def numbers(check: pa.Check, *names: str) -> dict[str, pa.Column]:
    """Columns of floats that share one check."""
    return {name: pa.Column(float, check) for name in names}


ACCURACIES = kind(
    ["model", "scale"],
    scale=pa.Column(float, pa.Check.isin(SCALES), nullable=True),
    accuracy=pa.Column(float, SHARE),
    drop=pa.Column(float, pa.Check.in_range(-1, 1), nullable=True),
)
FILTERS = kind(["filter"], **numbers(SHARE, "tpr", "fpr", "accuracy"))
STAGES = kind(["scale", "stage"], scale=SCALE, images=pa.Column(int, SIZE))
WEATHER = kind(["shift"], images=pa.Column(int, SIZE), accuracy_percent=pa.Column(float, PERCENT))
SCENES = {
    "scenario": pa.Column(str, pa.Check.isin(SCENARIOS)),
    "trained_on": pa.Column(str, pa.Check.isin(["original images", "same scenario"])),
}
FACTS = kind(["id"], value=pa.Column(str, TEXT))
TABLES = {
    "cns_table2a": kind(["prompts"], fid=pa.Column(float, SIZE), accuracy=pa.Column(float, SHARE)),
    "cns_table2b": FILTERS,
    "cns_table3": kind(["axis", "label"], model=pa.Column(str), rce=pa.Column(float)),
    "cns_table4": kind(["model"], ce=pa.Column(float, SIZE), rce=pa.Column(float)),
    "cns_table5": ACCURACIES,
    "cns_table6": kind(["images"], **numbers(PERCENT, "without_percent", "with_percent"), n=pa.Column(int, SIZE)),
    "cns_table7": kind(["model"], accuracy_percent=pa.Column(float, PERCENT)),
    "cns_table7_parameters": kind(["architecture"], parameters_millions=pa.Column(float, SIZE)),
    "cns_table8": STAGES,
    "cns_table9": kind(["scale"], scale=SCALE, **numbers(SHARE, "unclear", "clear")),
    "cns_table10": WEATHER,
    "cns_text": FACTS,
    "cns2024_filter": FILTERS,
    "cns2024_table1": kind(["model"], **{name: pa.Column(str) for name in ("architecture", "supervision", "images")}),
    "cns2024_table2": ACCURACIES,
    "cns2024_table3": kind(["model", "scale"], scale=SCALE, share=pa.Column(float, SHARE)),
    "cns2024_table4": STAGES,
    "cns2024_table5": WEATHER,
    "cns2024_text": FACTS,
    "control_shift_text": FACTS,
    "ximagenet12_table1": kind(["model", "trained_on", "scenario"], **SCENES, accuracy_percent=pa.Column(float, PERCENT)),
    "ximagenet12_table2": kind(["model", "trained_on", "scenario"], **SCENES, squared_deviation_percent=pa.Column(float, PERCENT)),
    "ximagenet12_table2_scores": kind(
        ["model"],
        **numbers(SHARE, "variance_cross", "variance_inner", "score"),
        **numbers(PERCENT, "imagenet_percent", "cifar10_percent"),
    ),
    "ximagenet12_table3": kind(
        ["task", "variable"],
        **numbers(pa.Check.in_range(-1, 1), "estimate"),
        p=pa.Column(float),
        p_is_bound=pa.Column(bool),
        summary=pa.Column(str),
    ),
    "ximagenet12_text": FACTS,
    "timm_validation": kind(["model"], accuracy_percent=pa.Column(float, PERCENT), crop=pa.Column(float, SHARE)),
    "released_code": FACTS,
}


def read(name: str) -> pd.DataFrame:
    """A published table in its printed order, notes "" where there are none.

    Raises ValueError for a name that is no table and for rows that break its schema, FileNotFoundError for a missing file.
    """
    if name not in TABLES:
        raise ValueError(f"published table {name!r} is not known; accepted: {', '.join(TABLES)}")
    path = paths.PUBLISHED / f"{name}.csv"
    if not path.exists():
        raise FileNotFoundError(f"published table {path} does not exist; it belongs to the repository")
    types = {column: str(own.dtype) for column, own in TABLES[name].columns.items()}
    gaps = {column: [""] for column, own in types.items() if own != "str"}  # an empty text is a text
    rows = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=gaps)
    return tables.valid(rows, TABLES[name], path.name)


def facts(name: str) -> dict[str, str]:
    """The values of a table of facts by their id, as printed."""
    rows = read(name)
    return dict(zip(rows["id"], rows["value"], strict=True))


def by_scale(name: str, column: str = "accuracy") -> pd.DataFrame:
    """Accuracy or drop of Table 5 (or of the earlier Table 2): a row per model in printed order, a column per scale."""
    rows = read(name).dropna(subset="scale")
    return rows.pivot(index="model", columns="scale", values=column).reindex(rows["model"].unique())


def averages(name: str) -> pd.DataFrame:
    """The printed averages over scales of Table 5 (or of the earlier Table 2): accuracy and drop per model."""
    rows = read(name)
    return rows[rows["scale"].isna()].set_index("model")[["accuracy", "drop"]]


def binomial(count: int, n: int, *, confidence: float) -> tuple[float, float, float]:
    """A share with its Wilson interval (statsmodels)."""
    low, high = proportion_confint(count, n, alpha=1 - confidence, method="wilson")
    return count / n, float(low), float(high)
