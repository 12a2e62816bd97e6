"""Kinds of values in a parameter file, and the section that pydantic checks: what each accepts is told by its error."""

import types
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from cnslib.core.names import SHIFTS, demand, identifier

# No text for a number, no key that nobody reads, nothing that is not a finite number.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Rule = tuple[str, Callable[[Any], bool], str | Callable[[Any], str]]  # the key, what must hold of its section, and what is accepted


@dataclass_transform(frozen_default=True)
class Section:
    """A frozen dataclass whose values pydantic checks when it is built, and whose `rules` are those between its keys."""

    rules: ClassVar[Sequence[Rule]] = ()

    def __init_subclass__(cls, *, kw_only: bool = False):
        dataclass(cls, frozen=True, config=STRICT, kw_only=kw_only)

    def __post_init__(self):
        for key, holds, accepted in self.rules:
            named = f"{type(self).__name__.lower()}.{key}"
            demand(holds(self), named, getattr(self, key), accepted if isinstance(accepted, str) else accepted(self))


def section(module: str, name: str, *bases: type, rules: Sequence[Rule] = (), **keys: str) -> Any:
    """A section of a parameter file: words that are its keys, by the kind of their values, which is a name of this module."""
    annotations = {key: globals()[kind] for kind, words in keys.items() for key in words.split()}
    content = {"__annotations__": annotations, "__module__": module, **({"rules": rules} if rules else {})}
    return types.new_class(name, bases or (Section,), exec_body=lambda space: space.update(content))


def rule(holds: Callable[[Any], bool], accepted: str) -> AfterValidator:
    """Accepts the values for which something holds."""

    def checked(value: Any) -> Any:
        if not holds(value):
            raise ValueError(accepted)
        return value

    return AfterValidator(checked)


def mapped(kind: type) -> BeforeValidator:
    """Lets the mapping of a parameter file stand for a section inside another one."""
    return BeforeValidator(lambda value: kind(**value) if isinstance(value, dict) else value)


def is_file_name(name: str) -> bool:
    """Whether a name can be a part of a file's name on every system."""
    plain = bool(name) and name == name.strip() and name.isprintable() and len(name.encode()) <= 100
    return plain and not name.startswith(".") and not set(name) & set('/\\:*?"<>|')


def other_files(names: Collection[str]) -> Collection[str]:
    """The same names; ValueError where two of them would share one file, on a system that knows no capitals either."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(identifier(name).casefold(), name)
        if other != name:
            raise ValueError(f"names of different files, but {other!r} and {name!r} share {identifier(name)}")
    return names


DISTINCT = rule(lambda values: all(value not in values[:place] for place, value in enumerate(values)), "a list without repetitions")
RISING = rule(lambda values: list(values) == sorted(set(values)), "ascending, without repetitions")
FROM_ZERO = rule(lambda values: values[0] == 0, "ascending from 0.0")
TO_ONE = rule(lambda values: values[-1] == 1, "ascending from 0.0 to 1.0")
OTHER_FILES = AfterValidator(other_files)
NAMED = 'a name of at most 100 printable characters without / \\ : * ? " < > |, that begins with no dot or blank'

# An integer may stand for a fraction and stays one: what a unit was made from would read differently with 1.0 in the place of 1.
Number = int | float
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Inside = Annotated[Number, Field(gt=0, lt=1)]  # a share, without its ends
Share = Annotated[Number, Field(ge=0, le=1)]
Part = Annotated[Number, Field(gt=0, le=1)]
Decay = Annotated[Number, Field(ge=0, lt=1)]  # of averaged weights
Guidance = Annotated[Number, Field(ge=0, le=100)]
Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Some = Annotated[int, Field(ge=2)]
Three = Annotated[int, Field(ge=3)]
Steps = Annotated[int, Field(ge=1, le=1000)]  # of a sampler: the noise schedule has a thousand
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]
Shift = Annotated[str, rule(lambda name: name in SHIFTS, ", ".join(SHIFTS))]
Names = Annotated[list[str], Field(min_length=1), DISTINCT]
Shifts = Annotated[list[Shift], Field(min_length=1), DISTINCT]
Counts = Annotated[list[Count], Field(min_length=1)]
Rising = Annotated[list[Number], Field(min_length=2), RISING]
RisingPositive = Annotated[list[Positive], RISING]
Interval = Annotated[list[Share], Field(min_length=2, max_length=2), RISING]
Severities = Annotated[Rising, FROM_ZERO]
AllSeverities = Annotated[Severities, TO_ONE]  # from none to all
Scales = Annotated[list[Number], Field(min_length=1), RISING, FROM_ZERO]
FileName = Annotated[str, rule(is_file_name, NAMED)]
Files = Annotated[list[FileName], DISTINCT, OTHER_FILES]
Named = Annotated[Files, Field(min_length=1)]
Sources = Annotated[dict[FileName, str], Field(min_length=1), OTHER_FILES]  # a directory or address for each name
Members = Annotated[dict[FileName, dict], Field(min_length=1), OTHER_FILES]
Halving = Annotated[Number, rule(lambda value: value in [0.5 / 2**k for k in range(1, 11)], "0.5 halved one to ten times")]
WithName = Annotated[str, rule(lambda text: "{name}" in text, "a text with {name} in the place of the class")]
Angle = Annotated[Number, Field(ge=0, le=180)]
Angles = Annotated[list[Annotated[Number, Field(ge=0, le=90)]], Field(min_length=2), RISING]
Zoom = Annotated[Number, Field(ge=1, le=10)]
Amount = Annotated[Number, Field(ge=0, le=10)]
Shares = Annotated[list[Share], Field(min_length=1)]
Parts = list[Part]
Positives = Annotated[list[Positive], Field(min_length=1)]
Finer = Annotated[RisingPositive, Field(min_length=1)]
SomeSteps = Annotated[Steps, Field(ge=2)]
RisingCounts = Annotated[Counts, RISING]
Pairs = list[Annotated[list[Shift], Field(min_length=2, max_length=2), DISTINCT]]
Projects = Annotated[list[str], rule(lambda files: len(files) in (0, 2), "none, or two VIA projects, one per annotator")]
Annotator = Annotated[str, rule(lambda name: not name or is_file_name(name), NAMED)]  # whose name opens a contact sheet
Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
Address = Annotated[str, StringConstraints(pattern="^https?://")]
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
IdAccuracy = Literal["catalog", "scale 0"]
Side = Literal[64, 224]
String, Switch, Strings, Lists, Free = str, bool, list[str], dict[str, list[str]], dict[str, object]
Options, Rates = dict[str, str | int | float | bool], dict[str, Positive]
NamesBy = dict[str, Annotated[Names, Field(min_length=2)]]
ShiftList = list[Shift]


class Seeded(Section, kw_only=True):
    """A section with a seed of its own."""

    seed: Seed


class Learning(Seeded, kw_only=True):
    """A training: pictures per step, rate, and the weight of the past in averaged weights."""

    batch_size: Count
    learning_rate: Positive
    average: Decay


class Measured(Section, kw_only=True):
    """A model whose quality is measured on so many pictures."""

    quality_images: Count
