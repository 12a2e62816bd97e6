"""Weather: the law of thick air by hand, and what each shift puts where."""

import math

import pytest
import torch
from tiny_garments import squares

from cnslib.core.names import identifier
from cnslib.world import scenes, weather

ONE = torch.ones(6, 1, 1, 1)


@pytest.fixture(scope="module")
def drawn() -> tuple[scenes.Scene, scenes.Draws]:
    draws = scenes.draw([("weather", i) for i in range(6)])
    return scenes.scenes(squares(), draws, style="web"), draws


def shown(name: str, drawn, severity: float = 1.0) -> torch.Tensor:
    return getattr(weather, identifier(name))(drawn[0], severity * ONE, drawn[1]).clamp(0, 1)


@pytest.mark.parametrize("density", [0.0, 0.7, 3.0])
def test_light_decays_with_density_as_koschmieder_says(density):
    even = torch.full((1, 3, 64, 64), 0.2)
    scene = scenes.Scene(even, even[:, :1], even, even)
    found = weather.veil(scene, torch.ones(1, 1, 1, 1), torch.tensor(density), torch.tensor(0.9))
    assert found.mean().item() == pytest.approx(0.9 + (0.2 - 0.9) * math.exp(-density), abs=1e-5) and found.std() < 1e-5


def test_snow_lies_on_the_ground_and_on_what_faces_up(drawn):
    scene, snow = drawn[0], shown("heavy snow", drawn)
    assert snow[..., -4:, :].min() > 0.8
    upper = scene.mask * (1 - torch.roll(scene.mask, 3, 2))
    lower = scene.mask * (1 - torch.roll(scene.mask, -3, 2))
    bright = [(snow.mean(1, keepdim=True) * edge).sum() / edge.sum() for edge in (upper, lower)]
    assert bright[0] > bright[1] + 0.02


def test_fog_is_white_dust_beige_sand_orange_and_smog_darkest_at_the_top(drawn):
    tones = {name: shown(name, drawn, 1.0).mean((0, 2, 3)) for name in ("heavy fog", "heavy dust", "heavy sandstorm", "heavy smog")}
    spread = {name: (tone[0] - tone[2]).item() for name, tone in tones.items()}  # red above blue
    assert abs(spread["heavy fog"]) < 0.08 < spread["heavy dust"] < spread["heavy sandstorm"]
    assert tones["heavy fog"].mean() > tones["heavy dust"].mean() > tones["heavy smog"].mean()
    smog = shown("heavy smog", drawn)
    assert smog[..., :8, :].mean() < smog[..., -8:, :].mean()
