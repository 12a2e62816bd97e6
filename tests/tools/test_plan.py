"""The plan: its counts are those of the papers and of hands, and its hours follow from measured rates."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from cnslib.tools import operations, plan, rates


def found(sections):
    return {one.what: one for one in plan.work(sections)}


def test_the_default_benchmark_has_112_sliders_and_22720_images(mini):
    """8 classes x 14 shifts; 320 unshifted images and 5 more for each of 4,480 trajectories. 16 steps, the last 12 of them with slider and
    the first 12 with guidance, which asks twice. A tenth of the sliders and more are trained for 60 iterations instead of 30."""
    works = found(mini)
    assert (works["sliders"].units, works["images"].units, works["tokens"].units) == (112, 22_720, 8)
    assert works["answers of classifiers"].units == len(mini["evaluation"].classifiers) * 22_720
    assert works["images"].passes == 320 * (12 * 2 + 4) + 320 * 14 * 5 * (8 * 2 + 4)
    assert works["images at other guidances"].units == 3 * 320
    assert works["tokens"].training == 8 * 120 * 16
    samples = (96 * 30 + 16 * 60) * 8
    assert (works["sliders"].training, works["sliders"].passes) == (samples, samples * 6)


def test_the_papers_benchmark_has_its_sliders_and_the_images_that_are_not_drawn_twice(paper):
    """1,400 sliders; 420,000 images less the 13 copies of each of 5,000 unshifted ones. 448 passes and one training pass of 16 each
    (reference sheet, 1.4), that is 25 x 16 + 2 x 16 without gradient and 16 with it."""
    works = found(paper)
    assert (works["sliders"].units, works["images"].units) == (1400, 420_000 - 13 * 5000)
    assert works["images"].passes == 2 * 26_750_000  # reference sheet, section 2: step-images shared across shifts
    assert (works["sliders"].passes, works["sliders"].training) == (1400 * 400 * 432, 1400 * 400 * 16)
    assert works["answers of classifiers"].units == 43 * 355_000
    assert works["tokens, given"].training == 0


def test_what_others_give_costs_nothing_but_its_report(paper):
    given = paper | {"base": dataclasses.replace(paper["base"], recipe="weights/sliders", in_star="")}
    works = found(given)
    assert (works["sliders, given"].passes, works["sliders, given"].training) == (0, 0)
    assert works["images of the health report"].passes == found(paper)["images of the health report"].passes > 0
    assert works["tokens"].training == 100 * 3000


def test_a_fast_drawing_counts_its_own_steps_and_fills_its_passes(mini, paper):
    """20 steps, 15 of them with slider; 12 seeds are drawn as three passes of 5. At the paper's scale 50 seeds fill ten of them."""
    always = {"generation": dataclasses.replace(mini["generation"], guided=[0.0, 1.0])}
    few = mini | {"base": dataclasses.replace(mini["base"], seeds=12)} | always
    fast = {name: found(one | {"base": dataclasses.replace(one["base"], drawing="fast")}) for name, one in (("few", few), ("paper", paper))}
    assert fast["few"]["images"].passes == 2 * 120 * (20 + 14 * 5 * 15) and fast["few"]["images"].units == 96 + 96 * 14 * 5
    assert fast["paper"]["images"].passes == 2 * 5000 * (20 + 14 * 5 * 15)
    assert fast["paper"]["images at most"].passes < found(paper)["images at most"].passes / 4.9


def test_the_bisection_asks_for_no_more_than_its_bound(mini):
    """Each of 8 classifiers halves one cell of 0.5 four times: 32 pictures of 48 trajectories; scans add the 35 multiples of 1/16 off the
    grid in 6 shifts."""
    assert found(mini)["images at most"].units == 48 * 32 + 6 * 35


def test_hours_are_told_with_two_digits_or_as_whole_numbers():
    assert [plan.rounded(value) for value in (0.123, 9.94, 9.96, 99.7, 1234.5)] == ["0.12", "9.9", "10", "100", "1,234"]


def test_hours_are_passes_times_rate():
    rate = rates.Rate(passing=3.6, slider_passing=36.0, slider_training=360.0, inversion_training=7.2, decoding=0.36, memory=0)
    works = [
        plan.Work("generation", "images", 10, passes=1000, decoded=10),
        plan.Work("sliders", "sliders", 1, passes=100, training=10),
        plan.Work("inversion", "tokens", 1, training=500),
        plan.Work("evaluation", "answers of classifiers", 5000, looked=1000),
        plan.Work("filtering", "images judged by three encoders", 1000, looked=1000),
    ]
    table = plan.hours(works, rate, {"evaluation": 7.2})
    assert table["hours"].tolist()[:4] == pytest.approx([1.001, 2.0, 1.0, 2.0]) and pd.isna(table["hours"][4])
    assert plan.hours(works, None, {})["hours"].isna().all()


def test_on_a_cpu_every_row_of_the_mini_world_has_hours(mini, tiny_pipeline_dir):
    unet, vae, _ = rates.models(tiny_pipeline_dir, "cpu")
    rate = rates.measure(unet, vae, mini, device="cpu", seconds=0)
    assert min(rate.passing, rate.slider_passing, rate.slider_training, rate.inversion_training, rate.decoding) > 0
    networks, unknown = operations.count(mini)
    speed = plan.looking_speed(mini, networks, 64, seconds=0)
    table = plan.hours(plan.work(mini), rate, {step: speed.looking(own) for step, own in networks.items()})
    assert not unknown and (table["hours"] > 0).all() and np.isfinite(table["hours"]).all()
    assert set(table["step"]) == {"inversion", "sliders", "generation", "filtering", "evaluation", "bisection"}
    assert speed.measured == {
        "convolutions": "data/models/classifiers/convnext",  # the middle of 12 by operations
        "matrix products": "data/models/classifiers/mae",
    }
    assert speed.decoding > 0 and min(speed.preparing.values()) > 0


def test_what_cannot_be_built_is_named_and_left_out(mini):
    chosen = {"resnet": "data/models/classifiers/resnet", "absent": "data/models/nobody", "unheard": "timm:nobody"}
    given = mini | {"evaluation": dataclasses.replace(mini["evaluation"], classifiers=chosen)}
    networks, unknown = operations.count(given)
    assert (len(networks["evaluation"]), list(unknown)) == (1, ["evaluation.classifiers.absent", "evaluation.classifiers.unheard"])
    text = "\n".join(plan.looks(networks, unknown, None))
    assert "2 of 6 encoders and classifiers" in text and "Config file not found" in text and "Unknown model (nobody)" in text


def test_the_plan_of_a_pipeline_that_is_here_measures_that_one(mini, tiny_pipeline_dir):
    """The tiny pipeline: pictures of 64 px, so 22,720 + 320 + 960 of 12,288 bytes of pixels, at 0.11 of these on disk."""
    here = mini | {"base": dataclasses.replace(mini["base"], pipeline=str(tiny_pipeline_dir))}
    text = plan.report(here, seconds=0)
    assert "hours of one device" in text and "hours of one core: filtering" in text and "left out of the sum" not in text
    count = len(mini["evaluation"].classifiers)
    assert f"8 classes, 14 shifts, 6 scales, 40 seeds, {count} classifiers" in text and "its own models" in text
    unet, vae, _ = rates.models(tiny_pipeline_dir, "cpu")
    sizes = plan.sizes(here, unet, vae)
    assert sizes["disk: images"] == pytest.approx(24_000 * 12288 * 0.11 / 2**30)


@pytest.mark.slow
def test_without_the_device_units_disk_memory_and_operations_are_told(paper, looking):
    """Stable Diffusion 2's adapter has 2,906,880 weights less its 150 alphas (reference tables): 1,400 of them in 16 bits are 7.6 GiB."""
    if torch.cuda.is_available():
        pytest.skip("the device is here")
    text = plan.report(paper, seconds=0)
    assert "no hours: cuda is not here" in text and "355,000" in text and "250,880,000" in text
    assert "disk: sliders: 7.6 GiB" in text
    assert "1 of 46 encoders and classifiers not known" in text and "vssm_base_v0 is no model of a library" in text
    total = sum(one.operations for one in looking[0]["evaluation"])
    assert f"evaluation {total / 1e9:,.0f}" in text
