"""Diffusion classifier: exact denoisers are right, errors match a hand computation, and stages change nothing they should not."""

import numpy as np
import pandas as pd
import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel
from golden_units import difference
from tiny_denoiser import CLASSES, COLOURS, SETTINGS, exact, images, picture, settings
from tiny_settings import changed

from cnslib.core import paths, recipes, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.studies.denoiser import comparison, diffusion_classifier
from cnslib.studies.denoiser.diffusion_classifier import Judge


@pytest.fixture(scope="module")
def tiny(tiny_pipeline_dir) -> Judge:
    return diffusion_classifier.text_judge(tiny_pipeline_dir, CLASSES, device="cpu")


@pytest.mark.parametrize("prediction_type", ["epsilon", "v_prediction"])
def test_a_denoiser_whose_error_is_zero_for_the_true_class_names_it(prediction_type):
    judge = exact(prediction_type)
    for name, colour in zip(CLASSES, COLOURS, strict=True):
        found = diffusion_classifier.judged(judge, picture(colour), name, 1, settings=SETTINGS)
        assert found.loc[found["candidate"] == name, list(diffusion_classifier.LOSSES)].to_numpy() == pytest.approx(0, abs=1e-4)
        table = found.assign(**{"shift": UNSHIFTED, "class": name, "seed": 1, "scale": 0.0})
        for loss in diffusion_classifier.LOSSES:
            answer = comparison.answers(table, CLASSES, loss, size=48, settings=SETTINGS).iloc[0]
            assert answer["top1"] == name and answer["margin"] > 0.05


@pytest.mark.parametrize("prediction_type", ["epsilon", "v_prediction"])
def test_errors_are_those_computed_by_hand(prediction_type):
    """The noise of a wrong picture is off by sqrt(abar / (1 - abar)) times the distance of the pictures, whatever the noise."""
    judge = exact(prediction_type)
    clean, noise = judge.conditions[:1], torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    distance = 0.5 * np.array([0, 90, 170]) / 127.5
    for timestep in (100, 500, 900):
        signal = np.cumprod(1 - np.linspace(0.0001, 0.02, 1000))[timestep]
        found = diffusion_classifier.errors(judge, clean, noise, timestep, [0, 1, 2])
        assert found[0] == pytest.approx(np.sqrt(signal / (1 - signal)) * distance, abs=1e-4)
        assert found[1] == pytest.approx(signal / (1 - signal) * distance**2, abs=1e-4)


def test_timesteps_are_the_middles_of_equal_parts_and_earlier_stages_a_part_of_them():
    assert diffusion_classifier.timesteps(settings(keep=[1], trials=[4]), 1000) == [125, 375, 625, 875]
    assert diffusion_classifier.stages(settings(keep=[5, 2, 1], trials=[1, 2, 8])) == [(5, [4]), (2, [2, 4, 6]), (1, list(range(8)))]
    with pytest.raises(ValueError, match=r"denoiser\.trials: 4.*at most the 3 timesteps"):
        diffusion_classifier.timesteps(SETTINGS, 3)


def test_stages_that_keep_all_classes_change_nothing(tiny):
    """Not even a bit: the same classes share a forward pass at every timestep."""
    one = diffusion_classifier.judged(tiny, picture_of_noise(1), "bag", 1, settings=settings(keep=[1], trials=[4]))
    staged = diffusion_classifier.judged(tiny, picture_of_noise(1), "bag", 1, settings=settings(keep=[3, 3, 1], trials=[1, 2, 4]))
    pd.testing.assert_frame_equal(one, staged)
    grid = one.pivot(index="timestep", columns="candidate", values="l1").to_numpy()
    alike = [diffusion_classifier.logits(grid, settings(keep=k, trials=t), size=1) for k, t in (([1], [4]), ([3, 3, 1], [1, 2, 4]))]
    assert np.array_equal(*alike)


def picture_of_noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), np.uint8)


def test_a_dropped_class_is_not_asked_for_again_and_each_loss_drops_for_itself():
    """By hand: after the places 1 and 3, class 2 is last by the first loss and class 0 by the second."""
    first = np.array([[9, 1, 0], [1, 2, 3], [9, 1, 0], [1, 2, 3]], float)
    second = first[:, ::-1]
    asked = []

    def ask(place, chosen):
        asked.append((place, chosen))
        return np.stack([first[place, chosen], second[place, chosen]])

    found = diffusion_classifier.eliminate(ask, 3, SETTINGS)
    assert asked == [(1, [0, 1, 2]), (3, [0, 1, 2]), (0, [0, 1, 2]), (2, [0, 1, 2])]  # each is somebody's
    assert np.array_equal(found, [first, second])
    assert diffusion_classifier.logits(first, SETTINGS, size=2) == pytest.approx([2 * (1.5 - 5), 0, 2 * (2 - 3)])
    asked.clear()
    diffusion_classifier.eliminate(
        lambda place, chosen: [asked.append((place, chosen)), np.stack([first[place, chosen]] * 2)][1], 3, SETTINGS
    )
    assert asked[2:] == [(0, [0, 1]), (2, [0, 1])]


def test_the_cost_said_before_is_the_cost_found():
    wanted, rng = settings(keep=[4, 2, 1], trials=[4, 8, 32]), np.random.default_rng(1)
    bounds = diffusion_classifier.cost(wanted, classes=10)
    assert bounds["whole"] == 320
    for _ in range(50):
        errors = rng.uniform(size=(2, 32, 10))
        found = diffusion_classifier.eliminate(lambda place, chosen, errors=errors: errors[:, place, chosen], 10, wanted)
        assert bounds["least"] <= (~np.isnan(found[0])).sum() <= bounds["most"]
    same = np.repeat(rng.uniform(size=(1, 32, 10)), 2, axis=0)
    assert (~np.isnan(diffusion_classifier.eliminate(lambda place, chosen: same[:, place, chosen], 10, wanted)[0])).sum() == bounds["least"]
    assert diffusion_classifier.cost(settings(keep=[1], trials=[32]), classes=10) == {"whole": 320, "least": 320, "most": 320}


def test_an_image_has_the_same_errors_alone_and_among_others(tiny, tmp_path):
    both = pd.concat([images({"bag": 1}), images({"bag": 200}).assign(shift="heavy snow", scale=1.0)], ignore_index=True)
    both["image"] = [tables.encode(picture_of_noise(n)) for n in range(2)]
    for rows, name in ((both, "both"), (both[1:], "alone")):
        diffusion_classifier.make(
            tiny, rows, units.Unit(tmp_path / f"{name}.parquet", diffusion_classifier.stamp(tiny, rows, SETTINGS)), SETTINGS
        )
    together, alone = (tables.read(tmp_path / f"{name}.parquet", diffusion_classifier.errors_schema) for name in ("both", "alone"))
    pd.testing.assert_frame_equal(together.query("scale == 1").reset_index(drop=True), alone)


def test_noise_belongs_to_class_seed_and_timestep():
    shape = torch.zeros(1, 2, 3, 3)
    assert torch.equal(diffusion_classifier.noise_like(shape, "bag", 1, 125, 1), diffusion_classifier.noise_like(shape, "bag", 1, 125, 1))
    others = [("coat", 1, 125, 1), ("bag", 2, 125, 1), ("bag", 1, 375, 1), ("bag", 1, 125, 2)]
    assert all(
        not torch.equal(diffusion_classifier.noise_like(shape, "bag", 1, 125, 1), diffusion_classifier.noise_like(shape, *key))
        for key in others
    )


@pytest.fixture(scope="module")
def transformer() -> DiTPipeline:
    """The parts of a class-conditional DiT with random weights: learned variance, epsilon prediction."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = DiTTransformer2DModel(
            num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=1, sample_size=8, num_embeds_ada_norm=3
        )
        for parameter in network.parameters():  # its last layers start at zero
            torch.nn.init.normal_(parameter, std=0.1)
        blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
        vae = AutoencoderKL(block_out_channels=(8, 8), latent_channels=4, norm_num_groups=4, **blocks)
    return DiTPipeline(transformer=network.eval(), vae=vae.eval(), scheduler=DDIMScheduler())


def test_a_class_conditional_transformer_judges_by_the_first_half_of_its_output(transformer):
    judge = Judge(transformer, diffusion_classifier.label_epsilon, CLASSES, torch.tensor([2, 0, 1]), "tiny")
    clean, noise = torch.randn(2, 1, 4, 8, 8, generator=torch.Generator().manual_seed(1))
    found = diffusion_classifier.errors(judge, clean, noise, 300, [0, 1, 2])
    signal = transformer.scheduler.alphas_cumprod[300]
    for place, label in enumerate([2, 0, 1]):
        with torch.no_grad():
            noisy = signal.sqrt() * clean + (1 - signal).sqrt() * noise
            output = transformer.transformer(noisy, timestep=torch.tensor([300]), class_labels=torch.tensor([label])).sample
        assert output.shape[1] == 8
        assert found[0, place] == pytest.approx(float((output[:, :4] - noise).abs().mean()), rel=1e-5)
    assert len(np.unique(found[1])) == 3
    judged = diffusion_classifier.judged(judge, picture_of_noise(1)[:16, :16], "bag", 1, settings=SETTINGS)
    assert set(judged["candidate"]) == set(CLASSES)


def test_a_network_that_predicts_something_else_is_refused():
    judge = exact("sample")
    with pytest.raises(ValueError, match="prediction_type 'sample' is not accepted; accepted: v_prediction, epsilon"):
        diffusion_classifier.judged(judge, picture(1), "bag", 1, settings=SETTINGS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": [2, 2]}, r"denoiser\.keep: \[2, 2\].*falling to 1"),
        ({"trials": [4, 2]}, r"denoiser\.trials: \[4, 2\]"),
        ({"trials": [4]}, r"denoiser\.trials: \[4\].*as many numbers"),
        ({"scales": [1.0, 2.5]}, r"denoiser\.scales"),
        ({"shifts": ["snow"]}, r"denoiser\.shifts\.0: 'snow'.*heavy snow"),
    ],
)
def test_one_clear_error_names_what_stages_may_be(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(SETTINGS, **changes)


def test_the_scales_of_the_committed_section_are_on_the_grid():
    sections = read.load(paths.resolve("params.yaml"))
    assert set(sections["denoiser"].scales) <= set(sections["base"].scales)


def test_the_tiny_unit_is_the_golden_one(tiny):
    assert not difference(recipes.DENOISER, diffusion_classifier.judged(tiny, picture_of_noise(1), "bag", 1, settings=SETTINGS))
