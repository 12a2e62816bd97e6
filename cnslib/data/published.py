"""The published tables, one row per printed number or cell: published/<paper>_<table>.csv.

Papers: cns (CNS-Bench, ICCV 2025), cns2024 (its earlier submission with supplement), control_shift, ximagenet12; timm holds the
library's own validation accuracies. Numbers stand as printed: a column that ends in _percent is in percent, all other shares are in [0, 1].
"""

import pandas as pd

from cnslib.core import paths

SCENARIOS = ("blur_background", "blur_object", "color_g", "color_b", "color_grey", "color_r", "random_background", "segmented_image")
TYPES = {"value": str, "note": str, "parameters_millions": float}  # what pandas would not see


def read(name: str) -> pd.DataFrame:
    """A published table in its printed order, empty texts ""."""
    rows = pd.read_csv(paths.PUBLISHED / f"{name}.csv", dtype=TYPES, keep_default_na=False, na_values=[""])
    return rows.fillna(dict.fromkeys(rows.select_dtypes(object), ""))


def by_scale(name: str) -> pd.DataFrame:
    """Accuracy of Table 5 (or of the earlier Table 2): a row per model in printed order, a column per scale."""
    rows = read(name).dropna(subset="scale")
    return rows.pivot(index="model", columns="scale", values="accuracy").reindex(rows["model"].unique())
