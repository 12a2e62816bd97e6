"""Styles: what of a scene each one keeps, and what the drawn parts are made of."""

import pytest
import torch
from tiny_garments import squares

from cnslib.core.names import SHIFTS, identifier
from cnslib.world import scenes, styles

ONE = torch.ones(6, 1, 1, 1)


@pytest.fixture(scope="module")
def drawn() -> tuple[scenes.Scene, scenes.Draws]:
    draws = scenes.draw([("styles", i) for i in range(6)])
    return scenes.scenes(squares(), draws, style="web"), draws


def shown(name: str, drawn) -> torch.Tensor:
    return getattr(styles, identifier(name))(drawn[0], ONE, drawn[1]).clamp(0, 1)


@pytest.mark.parametrize("name", [name for name in SHIFTS if not name.startswith("heavy") and name != "style of a tattoo"])
def test_the_object_can_still_be_told_from_its_background(drawn, name):
    """Inside and around the square's own place, well away from its bent rim; a tattoo draws the rim alone."""
    mask, image = drawn[0].mask, shown(name, drawn)
    inner = -torch.nn.functional.max_pool2d(-mask, 9, 1, 4)
    outer = 1 - torch.nn.functional.max_pool2d(mask, 9, 1, 4)
    inside, outside = ((image * part).sum((2, 3)) / part.sum((2, 3)) for part in (inner, outer))
    assert ((inside - outside).abs().amax(1) > 0.03).all()


def test_a_pencil_has_no_colour_and_a_tattoo_is_ink_on_skin(drawn):
    sketch, tattoo = shown("pencil sketch style", drawn), shown("style of a tattoo", drawn)
    assert (sketch.amax(1) - sketch.amin(1)).max() < 1e-6
    assert (tattoo[:, 0] > tattoo[:, 2]).float().mean() > 0.75  # skin is warm


def test_the_pixels_of_a_game_are_blocks_of_eight_and_few_colours(drawn):
    game = shown("video game renditions style", drawn)
    blocks = game[..., 16:, :].unfold(2, 8, 8).unfold(3, 8, 8)
    assert (blocks.amax((-1, -2)) - blocks.amin((-1, -2))).max() < 1e-5
    assert (game[..., 16:, :] * 3).sub((game[..., 16:, :] * 3).round()).abs().max() < 1e-5  # a palette of thirds
