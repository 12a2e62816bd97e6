"""Weather labels by CLIP and nearest neighbours (CNS-Bench supplement L, Figs. 4 and 31)."""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from cnslib.core.settings.method import Bootstrap
from cnslib.method.filtering import SHIFT_PROMPT
from cnslib.models.encoders import Clip
from cnslib.stats import bootstrap

UNKNOWN = "unknown"
NEIGHBOURS = 5  # as in Figs. 4 and 31


def probabilities(
    features: Float[np.ndarray, "rows features"], classes: pd.Series, clip: Clip, *, shifts: list[str], unknown: str
) -> pd.DataFrame:
    """Softmax of CLIP's scaled similarities to "a picture of a {class} in {shift}" per shift and to the text for none of them."""
    known = torch.from_numpy(np.asarray(features, np.float32))
    found = np.zeros((len(known), len(shifts) + 1))
    for name in sorted(set(classes)):
        rows = np.flatnonzero(classes == name)
        texts = [SHIFT_PROMPT.format(name=name, shift=shift) for shift in shifts] + [unknown.format(name=name)]
        scaled = clip.model.logit_scale.exp().cpu() * known[rows] @ clip.text_features(texts).T
        found[rows] = scaled.softmax(dim=1).double().numpy()
    return pd.DataFrame(found, columns=[*shifts, UNKNOWN])


def nearest(
    real: Float[np.ndarray, "rows features"], drawn: Float[np.ndarray, "images features"]
) -> tuple[Int[np.ndarray, "rows 5"], Float[np.ndarray, "rows 5"]]:
    """Places and cosines of the generated images closest to each real one, the closest first (Fig. 31)."""
    cosines = np.asarray(real, float) @ np.asarray(drawn, float).T
    places = np.argsort(-cosines, axis=1, kind="stable")[:, :NEIGHBOURS]
    return places, np.take_along_axis(cosines, places, 1)


def agreement(real: pd.DataFrame, drawn: pd.DataFrame, places: Int[np.ndarray, "rows 5"], *, settings: Bootstrap) -> pd.DataFrame:
    """Share of nearest neighbours of the same class and of the same weather, and both; `chance` is that of any generated image.

    The neighbours of one real image are resampled together.
    """
    rows = []
    for name, keys in {"class": ["class"], "weather": ["shift"], "both": ["class", "shift"]}.items():
        same = np.all([real[key].to_numpy()[:, None] == drawn[key].to_numpy()[None] for key in keys], axis=0)
        hits = np.take_along_axis(same, places, 1).ravel()
        repeated = real.loc[real.index.repeat(places.shape[1])]
        rows.append({"same": name, **bootstrap.rate(hits, repeated, settings=settings), "chance": same.mean()})
    return pd.DataFrame(rows)
