"""Learning without labels: its views, its backbone and the neighbours' test."""

import torch
from tiny_garments import VIT, garments

from cnslib.world import scenes, selfsupervised, zoo
from cnslib.world.training import Schedule

SCHEDULE = Schedule(steps=2, batch_size=4, learning_rate=1e-3, seed=1)


def test_views_of_a_garment_differ_and_carry_no_label():
    first, second = selfsupervised.views(garments(), ("test", 1), 6, crops=2)
    assert first.shape == second.shape == (6, 3, 64, 64) and not torch.equal(first, second)


def test_learning_without_labels_keeps_a_backbone_without_head(tmp_path):
    backbone = selfsupervised.train(
        garments(),
        architecture="vit_tiny_patch16_224",
        arguments=zoo.network_of(VIT)["arguments"],
        temperature=0.2,
        schedule=SCHEDULE,
        checkpoint=tmp_path / "d.pt",
        device="cpu",
    )
    features = selfsupervised.features(backbone, torch.rand(5, 3, 64, 64))
    assert features.shape == (5, 32) and torch.allclose(features.norm(dim=1), torch.ones(5), atol=1e-5)


def test_neighbours_name_the_class_of_images_that_are_in_the_bank():
    backbone = torch.nn.Flatten()
    image = torch.eye(4).repeat_interleave(48, 1).view(4, 3, 8, 8).repeat(10, 1, 1, 1)
    batch = scenes.Batch(image, torch.arange(4).repeat(10), torch.zeros(40), torch.zeros(40))
    assert selfsupervised.knn_correct(backbone, batch, batch, neighbours=5).all()
