import torch
from tiny_garments import few

from cnslib.core.settings.sections import Dit
from cnslib.studies import denoiser
from cnslib.world import autoencoder, dit

TINY = {"width": 32, "heads": 2, "layers": 1, "scenes": 12, "steps": 2, "batch_size": 4}
SETTINGS = Dit(**TINY, learning_rate=1e-3, average=0.5, quality_images=1, seed=1)


def test_a_trained_dit_predicts_the_same_noise_as_the_judge_that_is_opened_from_its_directory(tmp_path):
    torch.manual_seed(0)
    vae, garments = autoencoder.build([8, 8, 8], latent_channels=4).eval(), few()
    model = dit.train(vae, garments, SETTINGS, checkpoint=tmp_path / "dit.pt", device="cpu")
    dit.save(model, vae, tmp_path / "mini-dit")
    judge = denoiser.label_judge(tmp_path / "mini-dit", list(garments.classes), device="cpu")
    noisy, labels = torch.randn(2, 4, 16, 16), torch.tensor([0, len(garments.classes) - 1])
    with torch.no_grad():
        ours = model.float()(noisy, torch.full((2,), 700), class_labels=labels).sample
        torch.testing.assert_close(judge.epsilon(judge.parts, noisy, 700, labels), ours, rtol=0, atol=1e-3)  # positions were halved, too
    assert judge.side == 64 and judge.classes == list(garments.classes)
