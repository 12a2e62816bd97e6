"""Golden results: the tiny unit of every kind as its recipe made it when the recipe got its number, one small file each.

Processors differ, so a picture may be off by a grey level (its mean in each ninth), a number by 1e-4 or what a test allows. Where a
result changed, raise the recipe's number in `cnslib/core/recipes.py`, or mend the code. Where a number was raised, make the results anew:

    GOLDEN=write python -m pytest tests
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import safetensors.torch

from cnslib.core import tables
from cnslib.core.units import Recipe

FOLDER = Path(__file__).with_name("golden")
ROWS = 14  # of a table, evenly spaced


def difference(recipe: Recipe, found: pd.DataFrame | np.ndarray | Path, *, within: float = 1e-4, skip: tuple[str, ...] = ()) -> str:
    """In what a table, pictures or a file of tensors differ from the golden result of a recipe, in words; empty where they do not."""
    path = FOLDER / f"{recipe.name}.json"
    columns = {name: values for name, values in summary(found).items() if name not in skip}
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"recipe": recipe.code, "values": columns}).replace('], "', '],\n"') + "\n")
    if not path.exists():
        return f"{path.name} is missing: make it by GOLDEN=write python -m pytest"
    golden = json.loads(path.read_text())
    if golden["recipe"] != recipe.code:
        return f"{path.name} was made by {golden['recipe']!r}: make it anew by GOLDEN=write python -m pytest"
    allowed = {name: (1.0, 0.0) if name == "image" else (within, within) for name in sorted({*golden["values"], *columns})}
    changed = [name for name, far in allowed.items() if not same(golden["values"].get(name), columns.get(name), *far)]
    said = f"{recipe}: another {', '.join(changed)} from the same inputs; raise the recipe's number in cnslib/core/recipes.py, or mend"
    return said if changed else ""


def summary(found: pd.DataFrame | np.ndarray | Path) -> dict[str, list]:
    if isinstance(found, Path):
        tensors = safetensors.torch.load_file(found)
        parts = {name: value.double().flatten().numpy() for name, value in sorted(tensors.items())[:: max(1, len(tensors) // ROWS)]}
        return {name: [*rounded(value[:4]), *rounded([value.mean(), value.std()])] for name, value in parts.items()}
    if isinstance(found, np.ndarray):
        return {"image": [regions(picture) for picture in found[chosen(len(found))]]}
    rows = found.iloc[chosen(len(found))]
    return {str(name): plain(rows[name]) for name in rows}


def chosen(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, ROWS)).round().astype(int))


def plain(column: pd.Series) -> list:
    if column.name == "image":
        return [regions(tables.decode(data, "golden")) for data in column]
    if pd.api.types.is_float_dtype(column):
        return rounded(column)
    if isinstance(column.iloc[0], np.ndarray) and column.iloc[0].dtype != object:
        return [rounded(value[:4]) for value in column]
    return [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in column]


def rounded(values) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def regions(picture: np.ndarray) -> list[float]:
    thirds = [part for band in np.array_split(picture.astype(float), 3) for part in np.array_split(band, 3, axis=1)]
    return [round(float(part.mean()), 2) for part in thirds]


def same(golden, found, absolute: float, relative: float) -> bool:
    """Whether plain values agree, numbers within so much."""
    if isinstance(golden, list) and isinstance(found, list):
        pairs = zip(golden, found, strict=False)
        return len(golden) == len(found) and all(same(*pair, absolute, relative) for pair in pairs)
    if isinstance(golden, float) and isinstance(found, float):
        return bool(np.isclose(found, golden, rtol=relative, atol=absolute, equal_nan=True))
    return golden == found
