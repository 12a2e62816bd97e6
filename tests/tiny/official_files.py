"""Files in the exact format of the published CNS-Bench, built from its description: images, annotations, csv files, sliders."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

SCALES = (0.0, 0.5, 1.0)
FOLDERS = {22: "022_bald eagle", 207: "207_golden retriever"}
LABELS = [f"label {number}" for number in range(1000)]
LABELS[22], LABELS[207] = "bald eagle", "golden retriever"
CLASSES = ["bald eagle", "golden retriever"]
INFO = {"url": "https://edmond.mpg.de/dataset.xhtml?persistentId=doi:10.17617/3.MAGNKP", "version": "1.0", "license": "CC0 1.0"}
KEPT = [("painting_style", 22, 34), ("painting_style", 207, 2), ("the_design_of_sculpture", 22, 34)]  # shift, class, seed


def noise(*key: float | str, side: int = 8) -> np.ndarray:
    """A picture that depends on its key alone."""
    return np.random.default_rng(list("".join(map(str, key)).encode())).integers(0, 256, (side, side, 3), dtype=np.uint8)


def jpeg(*key: int | str, form: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(noise(*key, side=16)).save(buffer, form)
    return buffer.getvalue()


def published(shift: str, number: int, seed: int, scale: float) -> str:
    return f"{shift}/{FOLDERS[number]}/seed_{seed:04d}_scale_{int(1000 * scale):04d}.jpg"


def generated(shift: str, number: int, seed: int, scale: float) -> str:
    return f"{shift}/{FOLDERS[number]}/seed_{seed:04d}_startnoise_0750_scale_{int(1000 * scale):04d}m.png"


def benchmark_files(name=published, kept=KEPT) -> dict[str, bytes]:
    form = "PNG" if name is generated else "JPEG"
    keys = [(*trajectory, scale) for trajectory in kept for scale in SCALES]
    return {name(*key): jpeg(*(key if key[-1] else key[1:]), form=form) for key in keys}


def annotations(files: dict[str, bytes]) -> dict:
    images = []
    for name in sorted(files):
        shift, folder, file = name.split("/")
        parts = file.split(".")[0].rstrip("m").split("_")
        entry = {"image": name, "seed": int(parts[1]), "scale": int(parts[-1]) / 1000, "shift": shift, "class": int(folder[:3])}
        images.append(entry)
    shifts = sorted({entry["shift"] for entry in images})
    return {"info": INFO, "scales": list(SCALES), "classes": sorted(FOLDERS), "shifts": shifts, "images": images}


def write_folder(path: Path, files: dict[str, bytes], annotated: dict | None = None) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    if annotated is not None:
        (path / "annotations_cns.json").write_text(json.dumps(annotated))
    return path


def write_zip(path: Path, files: dict[str, bytes], root: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(root + name, data)
    return path


def results_csv(model: str, shift: str, rows: list[tuple[float | int, int, str]], *, tenth: bool = False) -> str:
    """One csv file of results.zip: rows are (predicted class, true class, image name); the index starts again every two rows.

    With `tenth` the column of the scale is what the released script makes of the published names.
    """
    lines = [f",pred_class,gt_class,shift,class_str,img_name,class_name,seed,scale,{model}"]
    for place, (given, right, name) in enumerate(rows):
        parts = name.split(".")[0].rstrip("m").split("_")
        scale = int(parts[-1]) / (10000 if tenth else 1000)
        folder = FOLDERS[right]
        lines.append(f"{place % 2},{given},{right},{shift},{folder},{name},{folder[4:]},{parts[1]},{scale},{given == right}")
    return "\n".join(lines) + "\n"
