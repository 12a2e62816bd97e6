"""The repository root and every folder, named once."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PUBLISHED = ROOT / "published"
CHECKPOINTS = ROOT / "checkpoints"
GARMENTS = ROOT / "data" / "fashion-mnist"
MODELS = ROOT / "data" / "models"
PHOTOS = ROOT / "data" / "photos"


def resolve(path: str) -> Path:
    """An absolute path; relative ones start at the repository root."""
    return ROOT / path


def shown(path: Path) -> str:
    """A path as a message names it: from the repository root if it lies there, else in full."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


@dataclass(frozen=True)
class Layout:
    """The output folders of a run; `out` is relative to the root ("." for the committed results) or a full path.

    `step` is the notebook that draws figures; without one, `figures` is the folder of all steps.
    """

    out: str
    step: str = ""

    @property
    def root(self) -> Path:
        """The folder that receives everything."""
        return ROOT / self.out

    def artifacts(self, step: str) -> Path:
        """The folder of one step's tables and weights, created."""
        return made(self.root / "artifacts" / step)

    @property
    def figures(self) -> Path:
        """The step's pictures with their csv."""
        return made(self.root / "figures" / self.step)

    @property
    def metrics(self) -> Path:
        """One json per notebook."""
        return made(self.root / "metrics")

    def locate(self, path: str) -> Path:
        """A path from the parameters: what begins with artifacts/ lies in this run's folder, anything else under the root."""
        return (self.root if path.startswith("artifacts/") else ROOT) / path


def made(folder: Path) -> Path:
    """Creates a folder and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder
