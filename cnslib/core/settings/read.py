"""Parameter files (YAML 1.2) as checked sections, one dataclass each, and the start of a notebook on them; the only code that opens them.

Checks are pydantic's, and an error is one line that names the key, the value and what is accepted.
"""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from cnslib.core import paths, sources
from cnslib.core.settings.analyses import ANALYSES, require_evaluated
from cnslib.core.settings.method import MAKING, Base, Bootstrap, Resampled
from cnslib.core.settings.studies import CHAPTERS, STUDIES
from cnslib.core.settings.world import RECIPES

UNKNOWN = "unexpected_keyword_argument"  # pydantic's name for a key that a dataclass lacks
SECTIONS: dict[str, type] = {section.__name__.lower(): section for section in (*MAKING, *ANALYSES, *STUDIES, *CHAPTERS, *RECIPES)}


@dataclass(frozen=True, repr=False)
class Run:
    """What a notebook works with: its own section, the shared one, its folders; every other section is an attribute of its name."""

    step: str
    sections: dict[str, Any]
    files: tuple[Path, ...]

    @property
    def settings(self) -> Any:
        """The section of the notebook's own name."""
        return self.sections[self.step]

    @property
    def base(self) -> Base:
        """What every step shares."""
        return self.sections["base"]

    @property
    def bootstrap(self) -> Bootstrap:
        """How this step resamples, and the confidence of its intervals."""
        return self.settings.bootstrap

    @property
    def layout(self) -> paths.Layout:
        """The folders of this run."""
        return paths.Layout(self.base.out, self.step)

    def __getattr__(self, name: str) -> Any:
        """Another section; AttributeError lists the accepted ones."""
        if name.startswith("_") or name not in self.sections:
            raise AttributeError(f"no section {name!r}; accepted: {', '.join(self.sections)}")
        return self.sections[name]

    def __repr__(self) -> str:
        """The step and its files, without places of this machine: executed notebooks hold it."""
        return f"{self.step}: {', '.join(path.name for path in self.files)}"

    def _repr_markdown_(self) -> str:
        """The section as a table of keys, values and the comments of the parameter files."""
        said = comments(self.files, self.step) | {"bootstrap": "; ".join(comments(self.files, "base.bootstrap").values())}
        rows = [(key, shown(value), said.get(key, "")) for key, value in dataclasses.asdict(self.settings).items()]
        lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in [(self.step, "value", "comment"), *rows]]
        return "\n".join(f"| {line} |" for line in [lines[0], "--- | --- | ---", *lines[1:]])


def start(step: str, params: str, overlay: str = "", *, models: Collection[str] = ()) -> Run:
    """The parameters of one notebook, with the directories of the models in `models` (keys of `base`) made sure of.

    Paths start at the repository root. Raises what `load` and `sources.provide` raise, ValueError for a step that the file lacks.
    """
    files = tuple(paths.resolve(name) for name in (params, overlay) if name)
    sections = load(*files)
    if step not in sections:
        raise ValueError(f"{params}: no section {step!r}; accepted: {', '.join(sections)}")
    return Run(step, sections | {"base": sources.provide(sections["base"], models)}, files)


def load(path: Path, overlay: Path | None = None) -> dict[str, Any]:
    """Every section of a parameter file as its checked dataclass; each key of an overlay replaces a value, or a whole mapping.

    Raises FileNotFoundError for a missing file, ValueError for an unknown section or key and for sections that contradict each other.
    """
    table = read(path)
    for section, values in (read(overlay) if overlay else {}).items():
        for key, value in values.items():
            if section not in table or key not in {field.name for field in dataclasses.fields(SECTIONS[section])}:
                raise ValueError(f"{overlay}: {section}.{key} is not a key of {path}")
            table[section][key] = value
    shared = table.get("base", {}).get("bootstrap", {})
    sections = {section: build(section, values, shared, path) for section, values in table.items()}
    if {"axes", "bisection", "evaluation"} <= sections.keys():
        require_evaluated(sections["axes"], sections["bisection"], sections["evaluation"])
    return sections


def read(path: Path) -> dict[str, dict]:
    """The plain content of a parameter file."""
    if not path.exists():
        raise FileNotFoundError(f"parameter file {path} does not exist")
    return YAML(typ="safe", pure=True).load(path.read_text())


def build(section: str, values: dict, shared: dict, path: Path):
    """One section's dataclass, its own `bootstrap` over the shared one; ValueError in one line for what is not accepted."""
    if section not in SECTIONS:
        raise ValueError(f"{path}: unknown section {section!r}; accepted: {', '.join(SECTIONS)}")
    kind = SECTIONS[section]
    own = {"bootstrap": shared | values.get("bootstrap", {})} if issubclass(kind, Resampled) else {}
    try:
        return kind(**values | own)
    except ValidationError as error:
        raise ValueError(f"{path}: {told(section, kind, error)}") from None


def told(section: str, kind: type, error: ValidationError) -> str:
    """The first problem of a section in one line: the key, the value and what is accepted; a misspelt key before the missing one."""
    found = error.errors(include_url=False)
    first = min(found, key=lambda problem: (problem["type"] != UNKNOWN, problem["loc"][-1:] == ("int",)))  # of int or float the wider
    key = ".".join([section, *(str(part) for part in first["loc"] if part not in ("int", "float", "[key]"))])
    if first["type"] in (UNKNOWN, "missing"):
        accepted = f"; accepted: {', '.join(field.name for field in dataclasses.fields(kind))}" if len(first["loc"]) == 1 else ""
        return f"{'unknown' if first['type'] == UNKNOWN else 'missing'} key {key}{accepted}"
    cause = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"].removeprefix("Input should be ")
    whole = "is not accepted" in cause  # a rule between keys, whose message names them
    return cause if whole else f"{key}: {first['input']!r} is not accepted; accepted: {cause}"


def comments(files: Collection[Path], section: str) -> dict[str, str]:
    """The comment behind each key of a section; a later file's comment replaces an earlier one's."""
    found: dict[str, str] = {}
    for path in files:
        table: Any = YAML().load(path.read_text())
        for name in section.split("."):
            table = table.get(name, {})
        for key in table:
            tokens = [token for place in table.ca.items.get(key, []) for token in (place if isinstance(place, list) else [place])]
            lines = [line.lstrip("# ").rstrip() for token in tokens if token for line in token.value.strip().splitlines()]
            if lines:
                found[key] = " ".join(line for line in lines if line)
    return found


def shown(value: object) -> str:
    """A value as the parameter file could hold it, in one line."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, str)) else str(value)
