"""What the keys of parameter files accept, and the section that pydantic checks: its error tells key, value and what is accepted."""

import math
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from cnslib.core.names import FILE_NAME_RULE, SHIFTS, demand, identifier, is_file_name

# No text for a number, no key that nobody reads, nothing that is not a finite number.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Rule = tuple[str, Callable[[Any], bool], str | Callable[[Any], str]]  # the key, what must hold of its section, and what is accepted


@dataclass_transform(frozen_default=True)
class Section:
    """A frozen dataclass whose values pydantic checks when it is built, and whose `rules` are those between its keys."""

    rules: ClassVar[Sequence[Rule]] = ()

    def __init_subclass__(cls):
        dataclass(cls, frozen=True, config=STRICT)

    def __post_init__(self):
        for key, holds, accepted in self.rules:
            name = f"{type(self).__name__.lower()}.{key}"
            demand(holds(self), name, getattr(self, key), accepted if isinstance(accepted, str) else accepted(self))


def section(name: str, keys: str, base: type = Section, /, *, rules: Sequence[Rule] = (), **kinds: Any) -> Any:
    """A section of a parameter file: its keys, of the kinds that `KINDS` or `kinds` tell."""
    annotations = {key: kinds.get(key) or KINDS[key] for key in keys.split()}
    content = {"__annotations__": annotations, "__module__": __name__, **({"rules": rules} if rules else {})}
    return types.new_class(name, (base,), exec_body=lambda space: space.update(content))


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


def sound(value: Any) -> bool:
    """Whether the numbers in a value are finite and not negative, at any depth."""
    if isinstance(value, (dict, list)):
        return all(map(sound, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, (int, float)) or 0 <= value < math.inf


DISTINCT = rule(lambda values: all(value not in values[:place] for place, value in enumerate(values)), "a list without repetitions")
RISING = rule(lambda values: list(values) == sorted(set(values)), "ascending, without repetitions")
WITH_ZERO = rule(lambda values: 0 in values and values[-1] > 0, "ascending, 0.0 among them and not the last")
FROM_ZERO = rule(lambda values: values[0] == 0, "ascending from 0.0")
TO_ONE = rule(lambda values: values[-1] == 1, "ascending from 0.0 to 1.0")
OTHER_FILES = rule(
    lambda names: len({identifier(name).casefold() for name in names}) == len(names), "names of different files on every system"
)

# An integer may stand for a fraction and stays one: what a unit was made from would read differently with 1.0 in the place of 1.
Number = int | float
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Inside = Annotated[Number, Field(gt=0, lt=1)]  # a share, without its ends
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
Some = Annotated[int, Field(ge=2, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]
Shift = Annotated[str, rule(lambda name: name in SHIFTS, ", ".join(SHIFTS))]
Names = Annotated[list[str], Field(min_length=1), DISTINCT]
Counts = Annotated[list[Count], Field(min_length=1)]
Rising = Annotated[list[NotNegative], Field(min_length=1), RISING]
FromZero = Annotated[Rising, FROM_ZERO]
BothSides = Annotated[list[Number], Field(min_length=2), RISING, WITH_ZERO]  # of a slider, which takes its shift away below 0
ToOne = Annotated[FromZero, TO_ONE]  # from none to all
Interval = Annotated[list[Share], Field(min_length=2, max_length=2), RISING]
FileName = Annotated[str, rule(is_file_name, FILE_NAME_RULE)]
Files = Annotated[list[FileName], DISTINCT, OTHER_FILES]
ByFile = Annotated[dict[FileName, str], Field(min_length=1), OTHER_FILES]  # a directory or address for each name
Members = Annotated[dict[FileName, dict], Field(min_length=1), OTHER_FILES, rule(sound, "finite numbers, none below 0")]
Halving = Annotated[Number, rule(lambda value: value in [0.5 / 2**k for k in range(1, 11)], "0.5 halved one to ten times")]
Projects = Annotated[list[str], rule(lambda files: len(files) in (0, 2), "none, or two VIA projects, one per annotator")]
WORDS: list[tuple[Any, str]] = [  # a key means the same in all sections, but for those that say otherwise
    (Seed, "seed training_seed"),
    (Count, "train_images heldout_images test_images validation_images training_images images_per_class images quality_images photographs"),
    (Count, "ladder_images reference_images style_images steps training_steps drawing_steps sampling_steps health_steps iterations epochs"),
    (Count, "batch_size health_seeds pair_seeds prompt_seeds seeds patience rank ranks width layers latent_channels checks draws runs"),
    (Count, "study scenes severities side workers cutouts per_caption heads"),
    (Annotated[int, Field(ge=0)], "retries scans"),
    (Positive, "learning_rate kl_weight margin blur temperature idle eta alpha zoom"),
    (NotNegative, "guidance health_guidance mixup cutmix weight_decay rotation"),
    (Inside, "recall clear overlap share"),
    (Share, "average smoothing least start_fraction caption_dropout erasing lowest mixed omitted redrawn named kept largest_step"),
    (str, "reference rce_reference encoder expert judge plain policy architecture vision network address setup"),
    (str, "decoder features model official root tree"),  # what is read from outside, if anything
    (dict[Literal["imagenet-r", "imagenet-a", "imagenetv2", "imagenet-sketch", "objectnet", "imagenet-real"], str], "tests"),
    (Text, "cite_as creator description name provider launcher data_collection data_social_impact data_release_maintenance_plan"),
    (bool, "card_each"),
    (list[str], "keywords peers pretrained same_pool without sizes data_collection_type machine_annotation_tools data_annotation_protocol"),
    (list[str], "data_biases data_limitations data_use_cases personal_sensitive_information"),
    (Names, "license networks classes"),
    (Annotated[list[Shift], Field(min_length=1), DISTINCT], "shifts"),
    (list[Annotated[list[Shift], Field(min_length=2, max_length=2), DISTINCT]], "pairs"),
    (list[Shift], "pair"),
    (Counts, "channels keep trials"),
    (Annotated[Counts, RISING], "counts"),
    (Rising, "angles factors contrast_severities finer"),
    (FromZero, "scales pair_weights"),
    (ToOne, "photo_severities"),
    (list[Annotated[Number, Field(gt=0, le=1)]], "contrast"),
    (Annotated[list[Share], Field(min_length=1)], "strengths nothing"),
    (Annotated[list[Positive], Field(min_length=1)], "penalties"),
    (dict[str, Positive], "finetuned probe"),
    (dict[str, str | int | float | bool], "options"),
    (dict[str, Annotated[Names, Field(min_length=2)]], "members"),
    (dict[str, list[str]], "families"),
    (dict[str, object], "arguments"),
    (ByFile, "classifiers backbones photo_classifiers"),
    (Members, "objectives"),
    (Halving, "resolution scan_step"),
    (Literal["catalog", "scale 0"], "id_accuracy"),
    (Projects, "files study_files"),
    (Annotated[str, rule(lambda name: not name or is_file_name(name), FILE_NAME_RULE)], "annotator"),  # whose name opens a contact sheet
    (Annotated[str, rule(lambda text: "{name}" in text, "a text with {name} in the place of the class")], "unknown"),
    (Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")], "version"),
    (Annotated[str, StringConstraints(pattern="^https?://")], "url"),
    (Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")], "date_published"),
]
KINDS = {key: kind for kind, keys in WORDS for key in keys.split()}
