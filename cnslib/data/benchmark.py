"""The benchmark as a torch data set: `from cnslib.data.benchmark import Benchmark`, then `DataLoader(Benchmark(folder, labels=labels))`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as arrow
from PIL import Image
from torch.utils.data import Dataset
from torchvision.transforms.functional import to_tensor

from cnslib.core import tables
from cnslib.core.names import SHIFTS, UNSHIFTED, demand, identifier
from cnslib.data import artifacts


class Benchmark(Dataset):
    """Images of the benchmark in the order of their key, each as (image, class index, {"shift", "seed", "scale"}).

    The compressed pictures are in memory once, shared by forked workers; `rows` is the table of what there is.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        labels: list[str],
        kept: pd.DataFrame | None = None,
        transform: Callable[[Image.Image], Any] = to_tensor,
    ):
        """Reads the image tables of a folder; the class index is the place of its name in `labels`.

        Without `kept` every stored image comes once, the unshifted ones under the shift "unshifted". With `kept`, a table of
        trajectories (shift, class, seed), come the images of these and no others, scale 0 repeated under each shift.
        """
        self.transform = transform
        stored = [tables.load(path, columns=[*tables.KEY, "image"]) for path in shards(Path(folder))]
        rows = pd.concat([table.select(tables.KEY).to_pandas() for table in stored], ignore_index=True)
        rows["place"] = np.arange(len(rows))
        if kept is not None:
            rows = artifacts.of_kept(rows, kept, "images of kept trajectories")
        self.rows = rows.sort_values(tables.KEY, ignore_index=True)
        self.images = arrow.concat_tables([table.select(["image"]) for table in stored])["image"]
        for name in sorted(set(self.rows["class"])):
            demand(name in labels, "class", name, f"one of the {len(labels)} labels")
        self.targets = [labels.index(name) for name in self.rows["class"]]

    def __len__(self) -> int:
        """How many images there are."""
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[Any, int, dict[str, str | int | float]]:
        """One image, its class index, and where it comes from."""
        row = self.rows.iloc[number]
        origin: dict[str, str | int | float] = {"shift": str(row["shift"]), "seed": int(row["seed"]), "scale": float(row["scale"])}
        data = self.images[int(row["place"])].as_py()
        return self.transform(Image.fromarray(tables.decode(data, f"image {origin}"))), self.targets[number], origin


def shards(folder: Path) -> list[Path]:
    """The image tables of a folder: that of the unshifted images, then the paper's shifts, then others."""
    there = {path.stem for path in folder.glob("*.parquet")}
    if not there:
        raise FileNotFoundError(f"{folder} holds no image table; the generation step makes them, `dvc pull` restores them")
    names = [UNSHIFTED, *map(identifier, SHIFTS)]
    return [folder / f"{name}.parquet" for name in [*filter(there.__contains__, names), *sorted(there.difference(names))]]
