"""The fourteen nuisance shifts of CNS-Bench (section 5.2) as functions of a severity in [0, 1] on rendered scenes.

All shifts share the head `(scene, severity, draws)`; severity is [batch, 1, 1, 1]. A shift may use the object mask, as weather
settles on objects and styles redraw them. `apply` guarantees that severity 0 is the bit-exact identity.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from cnslib.core.names import SHIFTS, identifier
from cnslib.world import styles, weather

RENDER: dict[str, Callable] = {name: getattr(weather if name.startswith("heavy") else styles, identifier(name)) for name in SHIFTS}


def apply(name: str, scene, severity: Float[Tensor, "batch"], draws) -> Float[Tensor, "batch 3 side side"]:
    """Renders the scenes under one shift. Severity 0 returns `scene.image` bit for bit.

    Raises ValueError for an unknown shift or a severity outside [0, 1].
    """
    if name not in SHIFTS:
        raise ValueError(f"unknown shift {name!r}; accepted: {', '.join(SHIFTS)}")
    if not ((severity >= 0) & (severity <= 1)).all():
        raise ValueError(f"severity must lie in [0, 1], got {severity.min():g} to {severity.max():g}")
    amount = severity.view(-1, 1, 1, 1).to(scene.image)
    shifted = RENDER[name](scene, amount, draws).clamp(0, 1)
    return torch.where(amount == 0, scene.image, shifted)
