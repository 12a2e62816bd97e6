import torch
from lightly.models import utils
from tiny_garments import VIT, garments
from torch import nn

from cnslib.core import seeds
from cnslib.world import pretraining, training, zoo
from cnslib.world.scenes import render

NETWORK = zoo.network_of(VIT)


def backbone(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = pretraining.timm.create_model(NETWORK["architecture"], num_classes=0, **NETWORK["arguments"])
    return model.eval()


def equal(first: nn.Module, second: nn.Module, *, without: str = "head.") -> bool:
    one, two = ({k: v for k, v in m.state_dict().items() if not k.startswith(without)} for m in (first, second))
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def test_the_reconstruction_loss_looks_at_hidden_patches_only():
    torch.manual_seed(0)
    image, hidden = torch.randn(1, 3, 64, 64), torch.tensor([[2, 5, 16]])
    target = utils.normalize_mean_var(utils.get_at_index(utils.patchify(image, 16), hidden - 1))
    assert pretraining.reconstruction_loss(target, image, hidden, side=16) < 1e-10
    seen = image.clone()
    seen[:, :, :16, :16] += 3.0  # patch 0 is token 1, which is visible
    assert pretraining.reconstruction_loss(target, seen, hidden, side=16) < 1e-10
    seen[:, :, :16, 16:32] = torch.randn(3, 16, 16)  # patch 1 is token 2, which is hidden
    assert pretraining.reconstruction_loss(target, seen, hidden, side=16) > 0.1


def test_the_masked_autoencoder_does_not_see_hidden_patches():
    torch.manual_seed(0)
    model = pretraining.MaskedAutoencoder(**NETWORK, width=16, depth=1).eval()
    kept, hidden = utils.random_token_mask((2, 17), 0.75)
    image = torch.randn(2, 3, 64, 64)
    patches = utils.patchify(image, 16)
    changed = patches.clone()
    changed.scatter_(1, (hidden - 1)[..., None].expand(-1, -1, patches.shape[2]), 9.0)
    other = changed.view(2, 4, 4, 16, 16, 3).permute(0, 5, 1, 3, 2, 4).reshape(2, 3, 64, 64)
    assert torch.equal(utils.patchify(other, 16), changed)
    assert torch.equal(model(image, kept, hidden), model(other, kept, hidden))


def test_a_linear_probe_keeps_the_backbone_bit_by_bit_and_separates_what_its_features_separate():
    start = backbone()
    model = pretraining.probe(garments(), start, NETWORK, penalty=1.0, seed=1, device="cpu").eval()
    assert equal(model, start) and equal(start, backbone())
    weight, bias = model.head.weight, model.head.bias
    image = torch.rand(5, 3, 64, 64)
    by_hand = training.predict(start, image, device="cpu") @ weight.T + bias
    assert torch.allclose(training.predict(model, image), by_hand, atol=1e-4) and weight.abs().sum() > 0


def test_the_views_of_a_garment_are_two_catalog_scenes_without_a_shift():
    key, pool = ("test", 1), garments()
    rows = torch.randperm(20, generator=seeds.generator(*key, "choice"))[:6]
    for view, pictures in enumerate(pretraining.views(pool, key, 6)):
        scenes = render(pool.grey[rows], [(*key, view, i) for i in range(6)], style="catalog")
        same, mirrored = ((pictures - side).abs().amax((1, 2, 3)) == 0 for side in (scenes, scenes.flip(-1)))
        assert (same | mirrored).all()
