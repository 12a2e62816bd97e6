"""Parameter files (YAML 1.2) as sections that pydantic checks, and the start of a notebook on them; the only code that opens them."""

import dataclasses
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from cnslib.core import clusters, paths, sources
from cnslib.core.names import demand
from cnslib.core.settings import method, sections
from cnslib.core.settings.fields import Section
from cnslib.core.settings.method import FEWEST, OTHER, SAME, Base, Bootstrap, Resampled

UNKNOWN = "unexpected_keyword_argument"  # pydantic's name for a key that a dataclass lacks
PARTS = (
    Section,
    Resampled,
    method.Bootstrap,
    method.Source,
    method.Pilot,
    sections.Scheduling,
    sections.Leg,
)  # no sections of a file themselves
KINDS = [kind for module in (method, sections) for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Section)]
SECTIONS: dict[str, Any] = {kind.__name__.lower(): kind for kind in KINDS if kind not in PARTS}


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
        """The section as a table of keys, values and the comments of the parameter files; below it, where too few are resampled."""
        said = {"bootstrap": comments(self.files, "base").get("bootstrap", "")} | comments(self.files, self.step)
        values = {key: json.dumps(value, ensure_ascii=False) for key, value in dataclasses.asdict(self.settings).items()}
        rows = [(self.step, "value", "comment"), ("---",) * 3, *((key, value, said.get(key, "")) for key, value in values.items())]
        lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
        drawn: dict[Any, int] = {SAME: self.base.seeds, OTHER: len(self.base.classes)}
        if drawn.get(getattr(getattr(self.settings, "bootstrap", None), "target", None), FEWEST) < FEWEST:
            lines += ["", f"*Intervals by resampling need at least {FEWEST} seeds and classes; those of this page are too short.*"]
        return "\n".join(lines)


def start(step: str, params: str, overlay: str = "", *, models: Collection[str] = ()) -> Run:
    """The parameters of one notebook, with the directories of the models in `models` (keys of `base`) made sure of, and its workers."""
    sections = load(params, overlay)
    demand(step in sections, f"{params}: section", step, ", ".join(sections))
    base = sources.provide(sections["base"], models)
    run = Run(step, sections | {"base": base}, tuple(paths.resolve(name) for name in (params, overlay) if name))
    workers = load(base.workers) if base.workers else {"cluster": None}
    demand(workers.keys() == {"cluster"}, "base.workers", base.workers, "a file with the section cluster alone")
    clusters.use(workers["cluster"], run.layout.root / "workers" / step)
    return run


def load(params: str | Path, overlay: str | Path = "") -> dict[str, Any]:
    """Every section of a parameter file, checked; each key of an overlay replaces a value, or a whole mapping. Paths start at the root."""
    table, changes = read(params), read(overlay) if overlay else {}
    for section, values in changes.items():
        fields = SECTIONS.get(section, Resampled).__dataclass_fields__ if section in table else {}
        if foreign := [key for key in values if key not in fields]:
            raise ValueError(f"{overlay}: {section}.{foreign[0]} is not a key of {params}")
    merged = {section: values | changes.get(section, {}) for section, values in table.items()}
    try:
        sections = {section: build(section, values, merged.get("base", {}).get("bootstrap", {})) for section, values in merged.items()}
        require_agreement(sections)
    except ValueError as error:  # its text begins with the key, which tells the file
        section, key = [*re.findall(r"(\w+)\.(\w+)", str(error)), ("", "")][0]
        raise ValueError(f"{overlay if key in changes.get(section, {}) else params}: {error}") from None
    return sections


def require_agreement(sections: dict[str, Any]) -> None:
    """Raises ValueError where an axis, its reference, the bisection or a slider names what the section that tells of it does not know."""
    if {"axes", "bisection", "evaluation"} <= sections.keys():
        axes, classifiers = sections["axes"], sections["evaluation"].classifiers
        listed = {f"axes.members.{axis}": names for axis, names in axes.members.items()}
        listed |= {"axes.reference": [axes.reference], "bisection.classifiers": sections["bisection"].classifiers}
        for key, name in [(key, name) for key, names in listed.items() for name in names]:
            demand(name in classifiers, key, name, f"the keys of evaluation.classifiers: {', '.join(classifiers)}")
    if {"base", "sliders"} <= sections.keys():
        method.require_words(sections["base"], sections["sliders"])


def read(path: str | Path) -> dict[str, dict]:
    """The plain content of a parameter file: keys by section. ValueError in one line for a file that holds anything else."""
    try:
        content = YAML(typ="safe", pure=True).load(paths.resolve(str(path)).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"parameter file {path} does not exist") from None
    except YAMLError as error:
        mark, why = getattr(error, "problem_mark", None), " ".join(str(getattr(error, "problem", None) or error).split())[:120]
        place = f", line {mark.line + 1}" if mark else ""
        raise ValueError(f"{path} is not accepted{place}: {why}; accepted: YAML without tags, each key once") from None
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{path} holds {'nothing' if content is None else repr(content)[:80]}; accepted: sections, each with its keys")
    for section, values in content.items():
        plain = isinstance(values, dict) and all(isinstance(key, str) for key in values)
        demand(plain, f"{path}: {section}", values, "keys with their values, or {}")
    return content


def build(section: str, values: dict, shared: dict) -> Any:
    """One section, its own `bootstrap` over the shared one; ValueError in one line for what is not accepted."""
    if section not in SECTIONS:
        raise ValueError(f"unknown section {section!r}; accepted: {', '.join(SECTIONS)}")
    kind, bootstrap = SECTIONS[section], values.get("bootstrap", {})
    if issubclass(kind, Resampled):
        for name, mapping in (("base", shared), (section, bootstrap)):
            demand(isinstance(mapping, dict), f"{name}.bootstrap", mapping, "keys with values")
        values = values | {"bootstrap": shared | bootstrap}
    try:
        return kind(**values)
    except ValidationError as error:
        raise ValueError(one_line(section, kind, error)) from None


def one_line(section: str, kind: type, error: ValidationError) -> str:
    """The first problem of a section in one line with key, value and what is accepted; a misspelt key comes before the missing one."""
    problems = error.errors(include_url=False)
    first = min(problems, key=lambda problem: (problem["type"] != UNKNOWN, problem["loc"][-1:] == ("int",)))  # of int or float the wider
    key = ".".join([section, *(str(part) for part in first["loc"] if part not in ("int", "float", "[key]"))])
    if first["type"] in (UNKNOWN, "missing"):
        accepted = f"; accepted: {', '.join(kind.__dataclass_fields__)}" if len(first["loc"]) == 1 else ""  # type: ignore[attr-defined]
        return f"{'unknown' if first['type'] == UNKNOWN else 'missing'} key {key}{accepted}"
    cause = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"].removeprefix("Input should be ")
    whole = "is not accepted" in cause  # a rule between keys, whose message names them
    return " ".join((cause if whole else f"{key}: {first['input']!r} is not accepted; accepted: {cause}").split())


def comments(files: Collection[Path], section: str) -> dict[str, str]:
    """The comment behind each key of a section; a later file's comment replaces an earlier one's."""
    blocks = [block for path in files for block in re.findall(rf"^{section}:.*\n((?:[ #].*\n)*)", path.read_text(), re.MULTILINE)]
    return {key: comment for block in blocks for key, comment in re.findall(r"^ +(\w+):.*?\s#\s+(.*)$", block, re.MULTILINE)}
