"""Lists the units that older code made: `cns stale [FOLDER]`.

Such a unit need not be wrong: a run takes it as it is until the number of its recipe is raised. Those that an earlier recipe made are
listed, too; the next run makes them anew.
"""

import argparse
import sys
from pathlib import Path

from cnslib.core import kinds, paths, units

SAME, CODE, EARLIER = "made by the present code", "older code, same recipe", "earlier recipe"


def state(words: list[str]) -> str:
    """What the words of a unit's record say about how it was made. One of two words is from the time before there were recipes."""
    if words[:1] == [units.SEALED]:
        return SAME  # no unit: written whenever its step runs
    recipes = {str(recipe): recipe for recipe in kinds.every().values()}
    if len(words) < 4 or words[2] not in recipes:
        return EARLIER
    return SAME if words[3] == recipes[words[2]].source else CODE


def listed(folder: Path) -> dict[tuple[str, str], list[Path]]:
    """The units under a folder that are not made by the present code, by state and recipe ("" where the record names none)."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(folder.rglob("*.digest")):
        unit = path.with_suffix("")
        words = units.record(unit)
        recipe = words[2] if len(words) == 4 else ""
        if (how := state(words)) != SAME:
            found.setdefault((how, recipe), []).append(unit)
    return found


def main(arguments: list[str]) -> int:
    """Command line: one line for each recipe, and the files below; 0, or 2 where there is no such folder."""
    parser = argparse.ArgumentParser(prog="cns stale", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=paths.ROOT / "artifacts", help="where to look (default artifacts/)")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        print(f"error: folder: {str(folder)!r} is not accepted; accepted: a folder with units", file=sys.stderr)
        return 2
    found = listed(folder)
    for (how, recipe), files in sorted(found.items()):
        print(f"{recipe or 'no recipe'}: {len(files)} units, {how}")
        print(*(f"  {path.relative_to(folder)}" for path in files), sep="\n")
    if not found:
        print(f"Every unit under {folder} was made by the present code.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
