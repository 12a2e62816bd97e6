import json

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from diffusers import AutoencoderKL, DDIMScheduler, DiTTransformer2DModel
from golden_units import difference
from tiny_denoiser import CLASSES, COLOURS, SETTINGS, exact, picture, settings

from cnslib.core import recipes
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


def test_a_dropped_class_is_not_evaluated_again_and_each_loss_drops_for_itself():
    first = np.array([[9, 1, 0], [1, 2, 3], [9, 1, 0], [1, 2, 3]], float)
    for second, rest in ((first[:, ::-1], [0, 1, 2]), (first, [0, 1])):
        evaluated = []

        def evaluate(place, chosen, second=second, evaluated=evaluated):
            evaluated.append((place, chosen))
            return np.stack([first[place, chosen], second[place, chosen]])

        denoiser.eliminate(evaluate, 3, SETTINGS)
        assert evaluated == [(1, [0, 1, 2]), (3, [0, 1, 2]), (0, rest), (2, rest)]
    assert denoiser.logits(first, SETTINGS, size=2) == pytest.approx([2 * (1.5 - 5), 0, 2 * (2 - 3)])


def test_the_tiny_unit_is_the_golden_one(tiny):
    assert not difference(recipes.DENOISER, denoiser.judged(tiny, picture_of_noise(1), "bag", 1, settings=SETTINGS))


LABELS = ["bag", "coat", "sandal", "shirt"]  # one more than the classes


@pytest.fixture(scope="module")
def dit(tmp_path_factory):
    """A DiT directory as its hub has it: an older class name and older names in the autoencoder, in torch's files."""
    folder = tmp_path_factory.mktemp("dit")
    sizes = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2, "sample_size": 8, "num_embeds_ada_norm": 4}
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = DiTTransformer2DModel(**sizes, out_channels=8)
        vae = AutoencoderKL(block_out_channels=(8, 8), latent_channels=4, norm_num_groups=4, **blocks)
    network.save_pretrained(folder / "transformer", safe_serialization=False)
    vae.save_pretrained(folder / "vae")
    DDIMScheduler(beta_schedule="linear").save_pretrained(folder / "scheduler")
    config = folder / "transformer" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"_class_name": "Transformer2DModel", "cross_attention_dim": None}))
    old = {new: old for old, new in denoiser.ATTENTION.items()}
    state = {
        ".".join(old.get(part, part) for part in key.replace("to_out.0", "proj_attn").split(".")): v for key, v in vae.state_dict().items()
    }
    assert sum(".query." in key for key in state) == 4  # weight and bias, twice
    (folder / "vae" / denoiser.WEIGHTS[0]).unlink()
    torch.save(state, folder / "vae" / denoiser.WEIGHTS[1])
    return folder


def test_a_dit_is_told_numbers_embeds_time_as_dit_does_and_gives_its_first_channels(dit):
    """DiT's own embedding: cosines, then sines, of t 10000^(-k/128); diffusers' last frequency is another."""
    judge = denoiser.label_judge(dit, LABELS, device="cpu")
    embedding = judge.parts.unet.transformer_blocks[1].norm1.emb.time_proj(torch.tensor([998]))[0]
    waves = 998 * 10000 ** (-torch.arange(128, dtype=torch.float64) / 128)
    assert torch.allclose(embedding.double(), torch.cat([waves.cos(), waves.sin()]), atol=1e-3)
    noisy = torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(1))
    whole = [
        judge.parts.unet(noisy[[i]], torch.tensor([500]), class_labels=torch.tensor([label])).sample for i, label in enumerate((3, 0, 1))
    ]
    found = judge.epsilon(judge.parts, noisy, 500, torch.tensor([3, 0, 1]))
    assert whole[0].shape == (1, 8, 8, 8) and torch.allclose(found, torch.cat(whole)[:, :4], atol=1e-5)
    assert not torch.allclose(found[0], judge.epsilon(judge.parts, noisy[:1], 500, torch.tensor([2]))[0])


def test_a_dit_chooses_among_all_labels_on_pictures_of_its_own_size(dit):
    judge = denoiser.label_judge(dit, LABELS, device="cpu")
    large = np.kron(np.arange(16 * 16 * 3).reshape(16, 16, 3) % 251, np.ones((3, 3, 1))).astype(np.uint8)  # 48 px: halved, then cropped
    assert judge.side == 16 and denoiser.latent(judge.parts, denoiser.cropped(large, 16)).shape == (1, 4, 8, 8)
    assert np.array_equal(denoiser.cropped(large[:16, :16], 16), large[:16, :16])
    found = denoiser.judged(judge, large, "bag", 1, settings=SETTINGS)
    assert set(found["candidate"]) == set(LABELS) and np.isfinite(found[["l1", "l2"]].to_numpy()).all()


def test_what_is_no_dit_or_knows_other_classes_is_refused(dit, tiny_pipeline_dir):
    with pytest.raises(FileNotFoundError, match=r"denoiser\.model: .*transformer/config\.json does not exist; accepted: a DiT directory"):
        denoiser.label_judge(tiny_pipeline_dir, LABELS, device="cpu")
    with pytest.raises(ValueError, match=r"base\.labels, for denoiser\.model: 3 is not accepted; accepted: the 4 classes that"):
        denoiser.label_judge(dit, CLASSES, device="cpu")


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
