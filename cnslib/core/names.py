"""The names of shifts, and how names become prompts, tokens and parts of files."""

SHIFTS = (
    "cartoon style",
    "plush toy style",
    "pencil sketch style",
    "painting style",
    "design of sculpture",
    "graffiti style",
    "video game renditions style",
    "style of a tattoo",
    "heavy snow",
    "heavy rain",
    "heavy fog",
    "heavy smog",
    "heavy dust",
    "heavy sandstorm",
)
UNSHIFTED = "unshifted"


def of_the_paper(shifts: list[str]) -> list[str]:
    """Those of some shifts that are among the paper's fourteen: a renderer draws them, and an oracle names them."""
    return [shift for shift in shifts if shift in SHIFTS]


def identifier(name: str) -> str:
    """A class or shift name as part of a file name: blanks become underscores."""
    return name.replace(" ", "_")


FILE_NAME_RULE = 'a name of at most 100 printable characters without / \\ : * ? " < > |, that begins with no dot or blank'


def is_file_name(name: str) -> bool:
    """Whether a name can be a part of a file's name on every system."""
    plain = bool(name) and name == name.strip() and name.isprintable() and len(name.encode()) <= 100
    return plain and not name.startswith(".") and not set(name) & set('/\\:*?"<>|')


def demand(holds: bool, key: str, value: object, accepted: str) -> None:
    """Raises ValueError naming the key, the offending value and what is accepted, unless the condition holds."""
    if not holds:
        raise ValueError(f"{key}: {value!r} is not accepted; accepted: {accepted}")


PROMPT = "a picture of a {token}"  # paper section 3.4; also the caption that the text encoder knows
NAMELESS = "a picture"  # the caption where nothing is shown that has a name


def text(shift: str, texts: dict[str, str]) -> str:
    """What a prompt says about a shift behind the class: its entry in `texts`, or "in" and its name (paper section A.1)."""
    return texts.get(shift, f"in {shift}")


def token(name: str) -> str:
    """The new word that stands for a class: "ankle boot" becomes "<ankle-boot*>"; lower case, as CLIP tokenizers read it."""
    return f"<{name.lower().replace(' ', '-')}*>"
