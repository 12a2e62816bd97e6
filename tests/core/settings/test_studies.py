"""Sections of the further studies: what each accepts."""

import pytest
from tiny_settings import changed

from cnslib.core import paths
from cnslib.core.settings import read

SECTIONS = read.load(paths.ROOT / "params.yaml")


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("scenarios", {"severities": [0.0, 0.5]}, r"scenarios\.severities: .*ascending from 0\.0 to 1\.0"),
        ("photos", {"reference": "vgg"}, r"photos\.reference: 'vgg' is not accepted; accepted: "),
        ("photos", {"severities": [0.0, 2.0]}, r"photos\.severities: .*from 0\.0 up to 1\.0"),
        ("labels", {"files": ["one.json"]}, r"labels\.files: .*none, or two VIA projects, one per annotator"),
        ("labels", {"annotator": "../anna"}, r"labels\.annotator: .*'\.\./anna'"),
        ("labels", {"annotator": "a/b"}, r"labels\.annotator: .*'a/b'"),
        ("labels", {"study_files": ["one.json"]}, r"labels\.study_files: .*none, or two VIA projects, one per annotator"),
        ("corruptions", {"contrast": [0.5]}, r"corruptions\.contrast: .*one value for each of"),
        ("directions", {"pairs": [["heavy snow", "heavy snow"]]}, r"directions\.pairs.*a list without repetitions"),
        ("dataset", {"version": "1.0"}, r"dataset\.version: '1\.0'"),
        ("controlshift", {"angles": [10.0, 90.0]}, r"controlshift\.angles: .*rising from 0\.0 to 90\.0"),
        ("controlshift", {"reference": "lenet"}, r"controlshift\.reference: 'lenet'"),
        ("segmentation", {"networks": ["FPN", "DeepLabV3Plus"]}, r"segmentation\.networks: .*DeepLabV3Plus first"),
    ],
)
def test_one_line_names_the_key_and_what_is_accepted(section, change, message):
    with pytest.raises(ValueError, match=message) as raised:
        changed(SECTIONS[section], **change)
    assert "\n" not in str(raised.value)


def test_a_ddim_sampler_takes_equal_strides_and_any_other_may_space_its_steps():
    samplers = {"DDIM": {"scheduler": "DDIMScheduler", "steps": 8, "spacing": "leading"}}
    others = {"UniPC": {"scheduler": "UniPCMultistepScheduler", "steps": 8, "spacing": "trailing"}}
    assert changed(SECTIONS["ablation"], samplers=samplers | others, reference="DDIM").samplers["UniPC"].spacing == "trailing"
    samplers["DDIM"]["spacing"] = "linspace"
    with pytest.raises(ValueError, match=r"spacing of a DDIMScheduler: 'linspace' is not accepted; accepted: leading or trailing"):
        changed(SECTIONS["ablation"], samplers=samplers, reference="DDIM")
