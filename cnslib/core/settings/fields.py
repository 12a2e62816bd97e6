"""Kinds of values in a parameter file, and the section that pydantic checks: what each accepts is told by its error."""

from collections.abc import Callable, Collection
from typing import Annotated, Any, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from cnslib.core.names import SHIFTS, identifier

# No text for a number, no key that nobody reads, nothing that is not a finite number.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass_transform(frozen_default=True)
class Section:
    """A frozen dataclass whose values pydantic checks when it is built."""

    def __init_subclass__(cls, *, kw_only: bool = False):
        dataclass(cls, frozen=True, config=STRICT, kw_only=kw_only)


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


class Seeded(Section, kw_only=True):
    """A section with a seed of its own."""

    seed: Seed


class Learning(Seeded, kw_only=True):
    """A training: pictures per step, rate, and the weight of the past in averaged weights."""

    batch_size: Count
    learning_rate: Positive
    average: Decay
