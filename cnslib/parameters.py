"""Reads parameter files (YAML 1.2) into checked sections, one dataclass each; the only code that opens them."""

import dataclasses
import typing
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from cnslib.analyses import ANALYSES, require_evaluated
from cnslib.chapters import CHAPTERS
from cnslib.config import MAKING
from cnslib.recipes import RECIPES
from cnslib.studies import STUDIES

SECTIONS: dict[str, type] = {section.__name__.lower(): section for section in (*MAKING, *ANALYSES, *STUDIES, *CHAPTERS, *RECIPES)}


def load(path: Path, overlay: Path | None = None) -> dict[str, Any]:
    """Every section of a parameter file as its checked dataclass; an overlay replaces single values.

    Raises FileNotFoundError for a missing file, ValueError for an unknown section or key and for sections that contradict each other.
    """
    table = read(path)
    for section, values in (read(overlay) if overlay else {}).items():
        for key, value in values.items():
            if key not in table.get(section, {}):
                raise ValueError(f"{overlay}: {section}.{key} is not a key of {path}")
            table[section][key] = value
    sections = {section: build(section, values, path) for section, values in table.items()}
    if {"axes", "bisection", "evaluation"} <= sections.keys():
        require_evaluated(sections["axes"], sections["bisection"], sections["evaluation"])
    return sections


def read(path: Path) -> dict[str, dict]:
    """The plain content of a parameter file."""
    if not path.exists():
        raise FileNotFoundError(f"parameter file {path} does not exist")
    return YAML(typ="safe", pure=True).load(path.read_text())


def build(section: str, values: dict, path: Path):
    """One section's dataclass; ValueError names an unknown section, an unknown, missing or mistyped key."""
    if section not in SECTIONS:
        raise ValueError(f"{path}: unknown section {section!r}; accepted: {', '.join(SECTIONS)}")
    kinds = typing.get_type_hints(SECTIONS[section])
    for key in values.keys() ^ kinds.keys():
        problem = "unknown" if key in values else "missing"
        raise ValueError(f"{path}: {problem} key {section}.{key}; accepted: {', '.join(kinds)}")
    for key, value in values.items():
        if not matches(value, kinds[key]):
            raise ValueError(f"{path}: {section}.{key} is {value!r}; accepted: a value of type {kinds[key]}")
    return SECTIONS[section](**values)


def matches(value: object, kind: Any) -> bool:
    """Whether a YAML value has the declared type; an integer may stand for a float, true and false for neither."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is object:
        return True
    if origin is list:
        return isinstance(value, list) and all(matches(v, inner[0]) for v in value)
    if (origin or kind) is dict:
        return isinstance(value, dict) and (not inner or all(matches(v, inner[1]) for v in value.values()))
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)


def flat(sections: dict[str, Any], names: list[str], section: str) -> dict[str, object]:
    """The values a notebook asks for: every key of its section, the base keys it names, and other sections it names, as mappings.

    Where names coincide, its own key comes first. Raises ValueError for a name that is none of these and for a key of the
    section that the notebook does not declare.
    """
    plain = {name: dataclasses.asdict(values) for name, values in sections.items()}
    own, shared = plain.pop(section, {}), plain.pop("base")
    known = plain | shared | own
    unknown = [name for name in names if name not in known]
    if unknown or (missing := sorted(own.keys() - set(names))):
        listed = f"unknown {unknown}" if unknown else f"undeclared {missing}"
        accepted = f"{sorted(own)}, base keys {sorted(shared)} and sections {sorted(plain)}"
        raise ValueError(f"parameters cell of notebook {section}: {listed}; accepted: {accepted}")
    return {name: known[name] for name in names}
