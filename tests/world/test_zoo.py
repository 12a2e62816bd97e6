import dataclasses
import itertools

import pandas as pd
import pytest
import torch
from golden_units import difference
from tiny_garments import VIT, garments

from cnslib.core import paths
from cnslib.core.settings import read
from cnslib.core.settings.sections import Augmentation, Pretraining, Zoo
from cnslib.models import classifiers
from cnslib.world import manifest, scenes, zoo

SECTIONS = read.load(paths.ROOT / "world.yaml")
TINY = {"batch_size": 4, "learning_rate": 1e-3, "average": 0.9, "quality_images": 40, "seed": 1}


@pytest.fixture
def run(tmp_path) -> zoo.Run:
    return zoo.Run(garments, models=tmp_path / "models", checkpoints=tmp_path / "checkpoints")


def members() -> list[zoo.Member]:
    tiny = Zoo(classifiers={"one": {"steps": 2, **VIT}}, **TINY)
    strong = {"policy": "rand-m9-mstd0.5-mmax9-inc1", "erasing": 0.25, "mixup": 0.8, "cutmix": 1.0, "mixed": 1.0, "smoothing": 0.1}
    strong = Augmentation(classifiers={"deit": {"steps": 2, **VIT}}, weight_decay=0.05, **strong, **TINY)
    objectives = {"mae": {"steps": 2, "masked": 0.5, "width": 16, "depth": 1}}
    chosen = {"mae": {"objective": "mae", "adaptation": "finetuned"}, "mae_probe": {"objective": "mae", "adaptation": "probe"}}
    adapted = {"finetuned": {"steps": 2, "learning_rate": 1e-4}, "probe": {"penalty": 1.0}}
    past = Pretraining(network=VIT, objectives=objectives, classifiers=chosen, **adapted, **TINY)
    return [*zoo.members(tiny), *zoo.members(strong), *zoo.members(past)]


def done(member: zoo.Member, run: zoo.Run) -> bool:
    return manifest.current(run.models, member.folder, recipe=member.recipe, options=member.options)


@pytest.mark.parametrize("name", ["one", "deit", "mae", "mae_probe"])
def test_a_classifier_is_trained_once_to_the_golden_one_recorded_and_then_left_alone(name, run):
    member = {m.name: m for m in members()}[name]
    entry = zoo.build_member(member, run, quality_images=8)
    assert entry["quality"]["accuracy"]["n"] == 8 and entry["steps"] == {"mae": 4}.get(name, 2)
    assert done(member, run) and ("neighbour_accuracy_untrained" in entry["quality"]) == name.startswith("mae")
    assert not name.startswith("mae") or entry["quality"]["neighbour_accuracy"]["n"] == 40
    untrained = dataclasses.replace(member, train=lambda *_: pytest.fail("trained again"))
    assert zoo.build_member(untrained, run, quality_images=8) == manifest.read(run.models)[member.folder]
    if name != "mae_probe":
        model = classifiers.load(name, str(run.models / member.folder), list(scenes.CLASSES))
        plain = scenes.sample(garments("heldout"), ("golden",), 4, style="catalog", unshifted=1.0)
        logits = model.logits(scenes.to_uint8(plain.image).numpy())
        assert not difference(member.recipe, pd.DataFrame(logits.double().numpy(), columns=list(scenes.CLASSES)), within=0.05)


def test_the_benchmark_asks_for_every_classifier_of_the_zoo():
    found = [zoo.members(SECTIONS[name]) for name in ("zoo", "augmentation", "pretraining")]
    built = {member.name: f"data/models/{member.folder}" for member in itertools.chain(*found)}
    assert built.items() <= read.load(paths.ROOT / "params.yaml")["evaluation"].classifiers.items()  # and whoever joins them


def test_the_oracle_loss_ignores_the_name_of_an_invisible_shift():
    logits = torch.zeros(1, len(scenes.CLASSES) + zoo.BESIDE)
    wrong = logits.clone()
    wrong[:, zoo.SHIFT_OUTPUTS] = torch.arange(15.0)
    faint = scenes.Batch(torch.empty(1, 3, 64, 64), torch.tensor([0]), torch.tensor([0]), torch.tensor([0.1]))
    heavy = scenes.Batch(torch.empty(1, 3, 64, 64), torch.tensor([0]), torch.tensor([0]), torch.tensor([0.9]))
    assert zoo.oracle_loss(logits, faint) == zoo.oracle_loss(wrong, faint)
    assert zoo.oracle_loss(logits, heavy) < zoo.oracle_loss(wrong, heavy)


def test_the_oracle_learns_no_severity_from_a_picture_whose_severity_nobody_knows():
    logits = torch.zeros(2, len(scenes.CLASSES) + zoo.BESIDE)
    other = logits.clone()
    other[1, zoo.SEVERITY_OUTPUT] = 5.0
    told = torch.empty(2, 3, 64, 64), torch.tensor([0, 0]), torch.tensor([0, 0])
    unknown, known = (scenes.Batch(*told, torch.tensor([0.5, severity])) for severity in (torch.nan, 0.5))
    assert zoo.oracle_loss(logits, unknown) == zoo.oracle_loss(other, unknown) == zoo.oracle_loss(logits, known)
    assert zoo.oracle_loss(logits, known) < zoo.oracle_loss(other, known)
