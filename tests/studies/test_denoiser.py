"""Diffusion classifier: exact denoisers are right, errors match a hand computation, stages change nothing, differences by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel
from golden_units import difference
from tiny_denoiser import CLASSES, COLOURS, SETTINGS, exact, images, picture, settings

from cnslib.core import recipes, tables
from cnslib.core.names import UNSHIFTED
from cnslib.stats import accuracy
from cnslib.studies import denoiser
from cnslib.studies.denoiser import Judge


@pytest.fixture(scope="module")
def tiny(tiny_pipeline_dir) -> Judge:
    return denoiser.text_judge(tiny_pipeline_dir, CLASSES, device="cpu")


def picture_of_noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), np.uint8)


@pytest.mark.parametrize("prediction_type", ["epsilon", "v_prediction"])
def test_a_denoiser_whose_error_is_zero_for_the_true_class_predicts_it(prediction_type):
    judge = exact(prediction_type)
    for name, colour in zip(CLASSES, COLOURS, strict=True):
        found = denoiser.judged(judge, picture(colour), name, 1, settings=SETTINGS)
        assert found.loc[found["candidate"] == name, list(denoiser.LOSSES)].to_numpy() == pytest.approx(0, abs=1e-4)
        table = found.assign(**{"shift": UNSHIFTED, "class": name, "seed": 1, "scale": 0.0})
        predicted = denoiser.predictions(table, CLASSES, size=48, settings=SETTINGS)
        assert predicted["model"].tolist() == ["denoiser_l1", "denoiser_l2"]
        assert predicted["top1"].eq(name).all() and (predicted["margin"] > 0.05).all()


@pytest.mark.parametrize("prediction_type", ["epsilon", "v_prediction"])
def test_errors_are_those_computed_by_hand(prediction_type):
    """The noise of a wrong picture is off by sqrt(abar / (1 - abar)) times the distance of the pictures, whatever the noise."""
    judge = exact(prediction_type)
    clean, noise = judge.conditions[:1], torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    distance = 0.5 * np.array([0, 90, 170]) / 127.5
    for timestep in (100, 500, 900):
        signal = np.cumprod(1 - np.linspace(0.0001, 0.02, 1000))[timestep]
        found = denoiser.errors(judge, clean, noise, timestep, [0, 1, 2])
        assert found[0] == pytest.approx(np.sqrt(signal / (1 - signal)) * distance, abs=1e-4)
        assert found[1] == pytest.approx(signal / (1 - signal) * distance**2, abs=1e-4)


def test_timesteps_are_the_middles_of_equal_parts_and_earlier_stages_a_part_of_them():
    assert denoiser.timesteps(settings(keep=[1], trials=[4]), 1000) == [125, 375, 625, 875]
    assert denoiser.stages(settings(keep=[5, 2, 1], trials=[1, 2, 8])) == [(5, [4]), (2, [2, 4, 6]), (1, list(range(8)))]
    with pytest.raises(ValueError, match=r"denoiser\.trials: 4.*at most the 3 timesteps"):
        denoiser.timesteps(SETTINGS, 3)


def test_stages_that_keep_all_classes_change_nothing(tiny):
    """Not even a bit: the same classes share a forward pass at every timestep."""
    one = denoiser.judged(tiny, picture_of_noise(1), "bag", 1, settings=settings(keep=[1], trials=[4]))
    staged = denoiser.judged(tiny, picture_of_noise(1), "bag", 1, settings=settings(keep=[3, 3, 1], trials=[1, 2, 4]))
    pd.testing.assert_frame_equal(one, staged)
    grid = one.pivot(index="timestep", columns="candidate", values="l1").to_numpy()
    alike = [denoiser.logits(grid, settings(keep=k, trials=t), size=1) for k, t in (([1], [4]), ([3, 3, 1], [1, 2, 4]))]
    assert np.array_equal(*alike)
    assert alike[0] == pytest.approx(grid.mean(0).min() - grid.mean(0))


def test_a_dropped_class_is_not_evaluated_again_and_each_loss_drops_for_itself():
    """By hand: after the places 1 and 3, class 2 is last by the first loss and class 0 by the second."""
    first = np.array([[9, 1, 0], [1, 2, 3], [9, 1, 0], [1, 2, 3]], float)
    for second, rest in ((first[:, ::-1], [0, 1, 2]), (first, [0, 1])):
        evaluated = []

        def evaluate(place, chosen, second=second, evaluated=evaluated):
            evaluated.append((place, chosen))
            return np.stack([first[place, chosen], second[place, chosen]])

        denoiser.eliminate(evaluate, 3, SETTINGS)
        assert evaluated == [(1, [0, 1, 2]), (3, [0, 1, 2]), (0, rest), (2, rest)]
    assert denoiser.logits(first, SETTINGS, size=2) == pytest.approx([2 * (1.5 - 5), 0, 2 * (2 - 3)])


def test_noise_belongs_to_class_seed_and_timestep():
    shape, key = torch.zeros(1, 2, 3, 3), ("bag", 1, 125, 1)
    assert torch.equal(denoiser.noise_like(shape, *key), denoiser.noise_like(shape, *key))
    for other in [("coat", 1, 125, 1), ("bag", 2, 125, 1), ("bag", 1, 375, 1), ("bag", 1, 125, 2)]:
        assert not torch.equal(denoiser.noise_like(shape, *key), denoiser.noise_like(shape, *other))


def test_a_class_conditional_transformer_judges_by_the_first_half_of_its_output():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4, "out_channels": 8, "sample_size": 8}
        network = DiTTransformer2DModel(**sizes, num_layers=1, num_embeds_ada_norm=3).eval()
        for parameter in network.parameters():  # its last layers start at zero
            torch.nn.init.normal_(parameter, std=0.1)
        vae = AutoencoderKL(block_out_channels=(8,), latent_channels=4, norm_num_groups=4)
    parts = DiTPipeline(transformer=network, vae=vae.eval(), scheduler=DDIMScheduler())
    judge = Judge(parts, denoiser.label_epsilon, CLASSES, torch.tensor([2, 0, 1]), "tiny")
    clean, noise = torch.randn(2, 1, 4, 8, 8, generator=torch.Generator().manual_seed(1))
    found = denoiser.errors(judge, clean, noise, 300, [0, 1, 2])
    signal = parts.scheduler.alphas_cumprod[300]
    for place, label in enumerate([2, 0, 1]):
        with torch.no_grad():
            noisy = signal.sqrt() * clean + (1 - signal).sqrt() * noise
            output = network(noisy, timestep=torch.tensor([300]), class_labels=torch.tensor([label])).sample
        assert found[0, place] == pytest.approx(float((output[:, :4] - noise).abs().mean()), rel=1e-5)
    with pytest.raises(ValueError, match="prediction_type: 'sample' is not accepted; accepted: v_prediction, epsilon"):
        denoiser.judged(exact("sample"), picture(1), "bag", 1, settings=SETTINGS)


def test_the_tiny_unit_is_the_golden_one(tiny):
    assert not difference(recipes.DENOISER, denoiser.judged(tiny, picture_of_noise(1), "bag", 1, settings=SETTINGS))


def test_only_missing_or_outdated_units_are_made_and_foreign_ones_deleted(tmp_path):
    judge, pictures = exact(), images(dict(zip(CLASSES, COLOURS, strict=True)))
    first = denoiser.judge_all(judge, pictures, folder=tmp_path, settings=SETTINGS)
    files = sorted(tmp_path.rglob("*.parquet"))
    assert [path.name for path in files] == ["bag_1.parquet", "coat_1.parquet", "sandal_1.parquet"]
    before = {path: path.stat().st_mtime_ns for path in files}
    files[0].write_bytes(b"cut off")
    pd.testing.assert_frame_equal(denoiser.judge_all(judge, pictures, folder=tmp_path, settings=SETTINGS), first)
    assert [path.stat().st_mtime_ns == before[path] for path in files] == [False, True, True]
    assert len({denoiser.stamp(judge, pictures, wanted) for wanted in (SETTINGS, settings(seed=2), settings(trials=[3, 4]))}) == 3
    alone = denoiser.judge_all(judge, pictures[:1], folder=tmp_path, settings=SETTINGS)
    assert sorted(tmp_path.rglob("*.parquet")) == files[:1]
    pd.testing.assert_frame_equal(alone, first[first["class"] == "bag"].reset_index(drop=True))  # alone as among others


def test_the_first_kept_trajectories_are_chosen_and_unshifted_images_evaluated_once():
    rows = [("heavy snow", "bag", s) for s in (5, 3, 9)] + [("cartoon style", "bag", 3), ("heavy snow", "coat", 1)]
    kept = pd.DataFrame(rows, columns=tables.TRAJECTORY)
    chosen = denoiser.choose(kept, ["bag"], settings=settings(shifts=["heavy snow", "cartoon style"]))
    found = sorted(chosen.itertuples(index=False, name=None))
    assert found == [("cartoon style", "bag", 3), ("heavy snow", "bag", 3), ("heavy snow", "bag", 5)]
    wanted = denoiser.keys(chosen, settings=SETTINGS)
    assert len(wanted) == 2 + 3 * 2 and (wanted["shift"] == UNSHIFTED).sum() == 2
    with pytest.raises(ValueError, match=r"denoiser\.shifts: \['heavy fog'\].*5 kept"):
        denoiser.choose(kept, ["bag"], settings=settings(shifts=["heavy fog"]))


def predicted(wrong: dict[str, list[list[int]]]) -> xr.DataArray:
    """Predictions of some models on two garments under snow; per garment whether each of three scales is wrong."""
    rows = [
        {"model": model, "shift": "heavy snow", "class": "bag", "seed": seed, "scale": scale, "top1": "coat" if bad else "bag"}
        for model, garments in wrong.items()
        for seed, row in enumerate(garments)
        for scale, bad in zip(SETTINGS.scales, row, strict=True)
    ]
    return accuracy.wrong_predictions(pd.DataFrame(rows))


HOW = {"reference": "denoiser_l1", "settings": SETTINGS.bootstrap}


@pytest.mark.parametrize(("growth", "expected"), [(False, {"vit": 1 / 3, "mae": 1 / 2}), (True, {"vit": 0, "mae": 0.5})])
def test_leads_and_their_growth_are_differences_of_drops_by_hand(growth, expected):
    """Drops of 0, 0.5, 1 and of 0, 0, 0.5: on average 0.5 and 1/6; the gap is 0.5 at both scales above 0."""
    wrong = predicted({"denoiser_l1": [[0, 1, 1], [0, 0, 1]], "vit": [[0, 0, 1], [0, 0, 0]], "mae": [[1, 1, 1], [0, 0, 0]]})
    ahead = denoiser.lead(wrong, growth=growth, **HOW).query("shift == @accuracy.ALL").set_index("model")["estimate"]
    assert ahead.to_dict() == pytest.approx(expected)


def test_only_timesteps_at_which_all_were_tried_vote_and_errors_of_v_weigh_the_noisy_ones_more():
    """The bag is behind by 2 at the first timestep and ahead by 1 at the second, where abar is a tenth: 10 as an error of v."""
    keys = {"shift": UNSHIFTED, "class": "bag", "seed": 1, "scale": 0.0}
    values = {("bag", 100): 3.0, ("coat", 100): 1.0, ("bag", 900): 1.0, ("coat", 900): 2.0, ("bag", 500): 0.0}
    table = pd.DataFrame([{**keys, "candidate": c, "timestep": t, "l1": e, "l2": e} for (c, t), e in values.items()])
    tried = denoiser.tried_by_all(table, classes=["bag", "coat"])
    assert set(tried["timestep"]) == {100, 900}
    single = denoiser.hits_by(tried, ["loss", "timestep"], settings=SETTINGS.bootstrap).set_index(["loss", "timestep"])["estimate"]
    assert single["l2"].to_dict() == {100: 0, 900: 1}
    signal = np.ones(1000)
    signal[900] = 0.1
    found = denoiser.spaces(tried, signal, settings=SETTINGS.bootstrap).set_index(["loss", "space"])["estimate"]
    assert found["l2"].to_dict() == {"noise": 0, "v": 1} and found["l1"].to_dict() == {"noise": 0, "v": 1}
