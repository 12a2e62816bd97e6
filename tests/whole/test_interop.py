import json
import re
import shutil
import textwrap

import timm
import torch
from safetensors.torch import load_file
from transformers import CLIPTextModel

from cnslib.core import paths
from cnslib.models import networks, tokens, vmamba  # noqa: F401  (the first and the last register networks with timm)

TOLD = (paths.ROOT / "docs" / "interop.md").read_text()
CLASSIFIERS = paths.ROOT / "data" / "models" / "classifiers"
ENCODER = paths.ROOT / "data" / "models" / "mini-sd" / "text_encoder"


def architecture(folder) -> str:
    if (folder / "config.json").exists():
        return json.loads((folder / "config.json").read_text())["architecture"]
    return json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]["vision_cfg"]["timm_model_name"]


def test_the_classifiers_that_plain_timm_lacks_are_those_named():
    lacking = {folder.name for folder in CLASSIFIERS.iterdir() if defined_in(architecture(folder)).startswith("cnslib.")}
    sentence = re.search(r"Four hold networks that these libraries do not have: (.*?)\.", TOLD, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence[1])) == lacking and len(lacking) == 4
    others = {defined_in(architecture(folder)).split(".")[0] for folder in CLASSIFIERS.iterdir() if folder.name not in lacking}
    assert others == {"timm"}


def defined_in(name: str) -> str:
    return timm.models.model_entrypoint(name).__module__


def test_the_text_encoder_has_new_names_and_a_copy_with_old_ones_has_the_same_weights(tmp_path):
    copy = shutil.copytree(ENCODER, tmp_path / "encoder")
    assert not any(key.startswith(tokens.OLD) for key in load_file(copy / "model.safetensors"))
    recipe = re.search(r"    from safetensors\.torch.*?\n\n", TOLD, re.DOTALL)[0].replace("copy/of/mini-sd/text_encoder", str(copy))
    exec(textwrap.dedent(recipe), {})
    assert all(key.startswith(tokens.OLD) for key in load_file(copy / "model.safetensors"))
    before, after = (CLIPTextModel.from_pretrained(folder, local_files_only=True).state_dict() for folder in (ENCODER, copy))
    assert before.keys() == after.keys() and all(torch.equal(after[key], value) for key, value in before.items())
