"""Every function that publishes an interval stands in `intervals.csv`: statistic, target, unit, and the test that holds its coverage."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cnslib.core import paths

LISTED = pd.read_csv(Path(__file__).with_name("intervals.csv")).set_index("function", verify_integrity=True)
RECORDS = "bounds reflected record estimates percentiles joined correlation mean share means counted independent_share independent_mean"
HELPERS = [
    *(f"stats.bootstrap.{name}" for name in [*RECORDS.split(), "independent_rank_correlation", "jackknifed", "of_few", "over_trainings"]),
    *(
        "stats.accuracy.tabulate",
        "stats.accuracy.paired",
        "stats.accuracy.unanimous",
        "stats.accuracy.over_images",
        "stats.calibration.reached",
        "stats.calibration.tabulate",
        "stats.accuracy.interval",
        "stats.line.number",
    ),
    *("stats.bands.placed", "stats.bands.bounds", "stats.ranking.order_record", "method.inversion.jackknife"),
]  # what makes the interval of a number that it is given; each is used, or a part of one that is
FOREIGN = {"proportion_confint", "confint_proportions_2indep", "conf_int", "confidence_interval", "tconfint_mean"}
ASIDE = {"tools", "plots"}  # these count images of a check, or show what others publish


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the library by their dotted names, without its own."""
    for path in sorted((paths.ROOT / "cnslib").rglob("*.py")):
        parts = path.relative_to(paths.ROOT / "cnslib").with_suffix("").parts
        if not ASIDE & set(parts):
            yield ".".join(parts), ast.parse(path.read_text())


def known(name: str, tree: ast.Module) -> dict[str, str]:
    """What the names of a module mean: its own functions, and what it imports from the library."""
    own = {node.name: f"{name}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cnslib"):
            source = node.module.removeprefix("cnslib").strip(".")
            own |= {alias.asname or alias.name: f"{source}.{alias.name}".strip(".") for alias in node.names}
    return own


def called(function: ast.FunctionDef, meaning: dict[str, str]) -> set[str]:
    """The library's functions that a function calls, by their full names, and methods and others by their own."""
    found = set()
    for node in (node.func for node in ast.walk(function) if isinstance(node, ast.Call)):
        if isinstance(node, ast.Name):
            found.add(meaning.get(node.id, node.id))
        elif isinstance(node, ast.Attribute):
            owner = meaning.get(node.value.id, "") if isinstance(node.value, ast.Name) else ""
            found.add(f"{owner}.{node.attr}" if owner else node.attr)
    return found


def publishers() -> set[str]:
    """The functions that call one of the helpers, themselves left out."""
    found = set()
    for name, tree in modules():
        meaning = known(name, tree)
        for node in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            if called(node, meaning) & {*HELPERS, *FOREIGN}:
                found.add(f"{name}.{node.name}")
    return found - set(HELPERS) - {"stats.bootstrap.means"}


def test_every_function_that_publishes_an_interval_is_listed_with_its_coverage():
    assert publishers() - set(LISTED.index) == set()
    assert {"stats.accuracy.accuracy", "stats.line.slopes", "studies.scenarios.score.scores", "method.health.curves"} <= publishers()


def test_whatever_is_listed_exists_and_so_does_the_test_that_holds_it():
    functions = {f"{name}.{node.name}" for name, tree in modules() for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(LISTED.index) - functions == set()
    for held in set(LISTED["coverage"]) - set(LISTED.loc[LISTED["target"] == "none", "coverage"]):
        file, _, test = held.partition("::")
        tree = ast.parse((paths.ROOT / "tests" / file).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, held
    assert LISTED.loc[LISTED["target"] == "none", "coverage"].str.startswith("no interval").all()
