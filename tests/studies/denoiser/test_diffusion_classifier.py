"""Diffusion classifier: exact denoisers are right, errors match a hand computation, and stages change nothing they should not."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel
from golden_units import agrees
from tiny_settings import changed

from cnslib.core import kinds, paths, tables, units
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings import read
from cnslib.core.settings.analyses import Denoiser
from cnslib.core.settings.method import Bootstrap
from cnslib.stats import accuracy
from cnslib.studies.denoiser import comparison, diffusion_classifier
from cnslib.studies.denoiser.diffusion_classifier import Judge

CLASSES = ["bag", "coat", "sandal"]
COLOURS = [40, 130, 210]
SETTINGS = Denoiser(
    bootstrap=Bootstrap(resamples=50, confidence=0.95, seed=1),
    seed=1,
    shifts=["heavy snow"],
    seeds=2,
    scales=[0.0, 1.0, 2.5],
    keep=[2, 1],
    trials=[2, 4],
)


def settings(**changes) -> Denoiser:
    return dataclasses.replace(SETTINGS, **changes)


def picture(colour: int) -> np.ndarray:
    return np.full((4, 4, 3), colour, np.uint8)


class Pixels:
    """An autoencoder whose latent is the picture itself."""

    device = torch.device("cpu")
    config = SimpleNamespace(scaling_factor=0.5)

    def encode(self, pixels):
        return SimpleNamespace(latent_dist=SimpleNamespace(mean=pixels))


def of_one_picture(parts, noisy, timestep, conditions):
    """The exact noise if all pictures of a class look the same, `conditions`: what is left of the input without the picture."""
    signal = parts.scheduler.alphas_cumprod[timestep]
    epsilon = (noisy - signal.sqrt() * conditions) / (1 - signal).sqrt()
    velocity = signal.sqrt() * epsilon - (1 - signal).sqrt() * conditions
    output = epsilon if parts.scheduler.config.prediction_type == "epsilon" else velocity
    return diffusion_classifier.as_epsilon(parts, output, noisy, timestep)


def exact(prediction_type: str = "epsilon") -> Judge:
    """A judge that knows the one picture of every class."""
    parts = SimpleNamespace(vae=Pixels(), scheduler=DDIMScheduler(prediction_type=prediction_type))
    known = torch.cat([diffusion_classifier.latent(parts, picture(colour)) for colour in COLOURS])
    return Judge(parts, of_one_picture, CLASSES, known, "toy")


def images(colours: dict[str, int], *, seed: int = 1) -> pd.DataFrame:
    """One unshifted image per class."""
    rows = [{"shift": UNSHIFTED, "class": n, "seed": seed, "scale": 0.0, "image": tables.encode(picture(c))} for n, c in colours.items()]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def tiny(tiny_pipeline_dir) -> Judge:
    return diffusion_classifier.text_judge(tiny_pipeline_dir, CLASSES, device="cpu")


def random_table(seed: int, keys: list[tuple], wanted: Denoiser = SETTINGS, classes: list[str] = CLASSES) -> pd.DataFrame:
    """A table of random errors, complete."""
    rng = np.random.default_rng(seed)
    grid = pd.MultiIndex.from_product([classes, diffusion_classifier.timesteps(wanted, 1000)], names=["candidate", "timestep"]).to_frame(
        index=False
    )
    parts = [grid.assign(**dict(zip(tables.KEY, key, strict=True))) for key in keys]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(**{loss: rng.uniform(size=len(table)) for loss in diffusion_classifier.LOSSES})


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


def test_the_answer_has_the_largest_logit_and_the_margin_tells_right_from_wrong():
    wanted = settings(keep=[2, 1], trials=[2, 8])
    keys = [("heavy snow", CLASSES[seed % 3], seed, 1.0) for seed in range(60)]
    table = random_table(1, keys, wanted)
    for loss in diffusion_classifier.LOSSES:
        answers = comparison.answers(table, CLASSES, loss, size=16, settings=wanted)
        right = answers["top1"] == answers["class"]
        assert 5 < right.sum() < 55 and ((answers["margin"] > 0) == right).all()
        assert all(row.top5[0] == row.top1 and sorted(row.top5) == CLASSES for row in answers.itertuples())
    one = table[table["seed"] == 0].pivot(index="timestep", columns="candidate", values="l1")[CLASSES].to_numpy()
    found = diffusion_classifier.logits(one, settings(keep=[1], trials=[8]), size=16)
    assert found == pytest.approx(16 * (one.mean(0).min() - one.mean(0)))


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


def test_only_missing_or_outdated_units_are_made_and_foreign_ones_deleted(tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # starting processes would take longer than the toy
    judge = exact()
    plan = diffusion_classifier.plan(images(dict(zip(CLASSES, COLOURS, strict=True))), tmp_path)
    first = comparison.judge_all(judge, plan, folder=tmp_path, settings=SETTINGS)
    assert sorted(path.name for path in tmp_path.rglob("*.parquet")) == ["bag_1.parquet", "coat_1.parquet", "sandal_1.parquet"]
    before = {path: path.stat().st_mtime_ns for path in plan}
    damaged, *others = plan
    damaged.write_bytes(b"cut off")
    pd.testing.assert_frame_equal(comparison.judge_all(judge, plan, folder=tmp_path, settings=SETTINGS), first)
    assert {path: path.stat().st_mtime_ns for path in others} == {path: before[path] for path in others}
    assert not any(units.done(path, diffusion_classifier.stamp(judge, part, settings(seed=2))) for path, part in plan.items())
    comparison.judge_all(judge, dict(list(plan.items())[:1]), folder=tmp_path, settings=SETTINGS)
    assert [path.name for path in tmp_path.rglob("*.parquet")] == [damaged.name]


def test_the_first_kept_trajectories_are_chosen_and_unshifted_images_asked_once():
    kept = pd.DataFrame(
        [("heavy snow", "bag", s) for s in (5, 3, 9)] + [("cartoon style", "bag", 3), ("heavy snow", "coat", 1)],
        columns=tables.TRAJECTORY,
    )
    chosen = comparison.choose(kept, ["bag"], settings=settings(shifts=["heavy snow", "cartoon style"]))
    found = sorted(chosen.itertuples(index=False, name=None))
    assert found == [("cartoon style", "bag", 3), ("heavy snow", "bag", 3), ("heavy snow", "bag", 5)]
    wanted = comparison.keys(chosen, settings=SETTINGS)
    assert len(wanted) == 2 + 3 * 2 and (wanted["shift"] == UNSHIFTED).sum() == 2
    with pytest.raises(ValueError, match=r"denoiser\.shifts: none of 5 kept"):
        comparison.choose(kept, ["bag"], settings=settings(shifts=["heavy fog"]))


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


def shares_of(wrong: dict[str, list[list[int]]]) -> accuracy.Shares:
    """Error shares of some models on two garments under snow; per garment whether each of three scales is wrong."""
    rows = [
        {"model": model, "shift": "heavy snow", "class": "bag", "seed": seed, "scale": scale, "top1": "coat" if bad else "bag"}
        for model, garments in wrong.items()
        for seed, own in enumerate(garments)
        for scale, bad in zip(SETTINGS.scales, own, strict=True)
    ]
    return accuracy.error_shares(accuracy.outcomes(pd.DataFrame(rows)), settings=SETTINGS.bootstrap)


def test_lead_and_widening_are_differences_of_drops_by_hand():
    """Drops of 0, 0.5, 1 and of 0, 0, 0.5: on average 0.5 and 1/6; the gap is 0.5 at both scales above 0."""
    shares = shares_of({"denoiser_l1": [[0, 1, 1], [0, 0, 1]], "vit": [[0, 0, 1], [0, 0, 0]], "mae": [[1, 1, 1], [0, 0, 0]]})
    ahead = comparison.lead(shares, reference="denoiser_l1").query("shift == @accuracy.ALL").set_index("model")["estimate"]
    assert ahead.to_dict() == pytest.approx({"vit": 1 / 3, "mae": 1 / 2})
    growth = comparison.widening(shares, reference="denoiser_l1").query("shift == @accuracy.ALL").set_index("model")["estimate"]
    assert growth.to_dict() == pytest.approx({"vit": 0, "mae": 0.5})
    beside = comparison.published(shares, pd.read_csv(paths.PUBLISHED / "denoiser.csv").query("scale.isna()"), reference="denoiser_l1")
    assert beside["ours"].tolist() == pytest.approx([1 / 2, 1 / 6, 0, 1 / 3, 1 / 2])
    assert beside["published"].tolist() == pytest.approx([0.106, 0.07, 0.05, 0.036, 0.056])  # 0.036 is what the list of claims says


def test_only_timesteps_at_which_all_were_tried_vote_and_errors_of_v_weigh_the_noisy_ones_more():
    """The bag is behind by 2 at the first timestep and ahead by 1 at the second, where abar is a tenth: 10 as an error of v."""
    keys = {"shift": UNSHIFTED, "class": "bag", "seed": 1, "scale": 0.0}
    values = {("bag", 100): 3.0, ("coat", 100): 1.0, ("bag", 900): 1.0, ("coat", 900): 2.0, ("bag", 500): 0.0}
    table = pd.DataFrame([{**keys, "candidate": c, "timestep": t, "l1": e, "l2": e} for (c, t), e in values.items()])
    tried = comparison.tried_by_all(table, classes=["bag", "coat"])
    assert set(tried["timestep"]) == {100, 900}
    single = comparison.hits_by(tried, ["loss", "timestep"], settings=SETTINGS.bootstrap).set_index(["loss", "timestep"])["estimate"]
    assert single["l2"].to_dict() == {100: 0, 900: 1}
    signal = np.ones(1000)
    signal[900] = 0.1
    found = comparison.spaces(tried, signal, settings=SETTINGS.bootstrap).set_index(["loss", "space"])["estimate"]
    assert found["l2"].to_dict() == {"noise": 0, "v": 1} and found["l1"].to_dict() == {"noise": 0, "v": 1}


def test_mean_margins_count_the_unshifted_image_under_its_shift():
    keys = [(UNSHIFTED, "bag", 1, 0.0), ("heavy snow", "bag", 1, 1.0), ("heavy snow", "bag", 1, 2.5)]
    answers = pd.DataFrame(keys, columns=tables.KEY).assign(model="denoiser_l1", margin=[3.0, 2.0, -1.0])
    chosen = pd.DataFrame([("heavy snow", "bag", 1)], columns=tables.TRAJECTORY)
    found = comparison.margins(answers, chosen, settings=SETTINGS)
    assert found["estimate"].tolist() == [3, 2, -1] and (found["n"] == 1).all() and (found["low"] == found["estimate"]).all()


def test_the_bill_is_the_cost_of_an_image_times_their_number():
    bill = comparison.costs(7, classes=10, settings=settings(keep=[1], trials=[4]))
    assert bill["evaluations"].to_dict() == {"whole": 280, "least": 280, "most": 280}


def test_the_tiny_unit_is_the_golden_one(tiny):
    agrees(kinds.DENOISER, diffusion_classifier.judged(tiny, picture_of_noise(1), "bag", 1, settings=SETTINGS))
