"""Costs of pieces of work: what is noted is read again, and only beside what it compares with."""

import dataclasses

import pytest

from cnslib.core import paths, sites
from cnslib.core.settings import read

COST = sites.Cost(seconds=1.5, device="a card", memory=2**30)


@pytest.fixture(scope="module")
def sections():
    return read.load(paths.ROOT / "params.yaml")


def test_the_latest_cost_of_a_piece_is_read_and_those_of_other_parameters_are_not(tmp_path):
    site = sites.Site(tmp_path, "these")
    site.note("sliders", "heavy_snow/coat", 1, COST)
    site.note("sliders", "heavy_snow/bag", 1, COST)
    site.note("sliders", "heavy_snow/coat", 1, dataclasses.replace(COST, seconds=2.0))
    sites.Site(tmp_path, "others").note("sliders", "heavy_snow/coat", 1, dataclasses.replace(COST, seconds=9.0))
    found = sites.costs(tmp_path, "these").set_index("name")
    assert found["seconds"].to_dict() == {"heavy_snow/bag": 1.5, "heavy_snow/coat": 2.0}
    assert found.loc["heavy_snow/bag"].to_dict() == {"work": "sliders", "units": 1, "seconds": 1.5, "device": "a card", "memory": 2**30}


def test_half_a_line_of_a_killed_run_is_passed_over(tmp_path):
    sites.Site(tmp_path, "these").note("sliders", "heavy_snow/coat", 1, COST)
    with open(tmp_path / sites.COSTS, "a") as stream:
        stream.write('7\n{"work": "sliders", "na')
    assert len(sites.costs(tmp_path, "these")) == 1
    sites.Site(tmp_path, "these").note("sliders", "heavy_snow/bag", 1, COST)
    assert sites.costs(tmp_path, "these")["name"].tolist() == ["heavy_snow/coat", "heavy_snow/bag"]


def test_nothing_is_noted_without_a_folder_and_nothing_read_where_none_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sites.Site().note("sliders", "heavy_snow/coat", 1, COST)
    assert not list(tmp_path.iterdir()) and sites.costs(tmp_path / "absent", "").empty


@pytest.mark.parametrize(
    ("step", "section", "change", "same"),
    [
        ("sliders", "sliders", {"iterations": 7}, False),
        ("sliders", "base", {"device": "cuda"}, False),
        ("sliders", "base", {"classes": ["bag", "dress"], "out": "elsewhere", "workers": "clusters/slurm.yaml"}, True),
        ("sliders", "generation", {"steps": 9}, True),
        ("generation", "base", {"seeds": 3}, False),
        ("evaluation", "evaluation", {"classifiers": {"resnet": "data/models/classifiers/resnet"}}, True),
        ("evaluation", "base", {"classes": ["bag", "dress"]}, False),
        ("filtering", "base", {"shifts": ["heavy snow"]}, True),
        ("filtering", "base", {"classes": ["bag", "dress"]}, False),
    ],
)
def test_a_trial_tells_what_the_whole_costs_unless_a_piece_of_it_is_another(sections, step, section, change, same):
    """A slider costs the same whatever others there are; a classifier sees all pictures, however many others do."""
    other = sections | {section: dataclasses.replace(sections[section], **change)}
    assert (sites.conditions(step, other) == sites.conditions(step, sections)) == same


def test_a_run_notes_in_its_own_folder(tmp_path, monkeypatch):
    text = (paths.ROOT / "params.yaml").read_text().replace('out: "."', f'out: "{tmp_path}"')
    (tmp_path / "params.yaml").write_text(text)
    run = read.start("failure", str(tmp_path / "params.yaml"))
    assert sites.current.folder == tmp_path / "workers" / "failure" == run.layout.workers / "failure" and sites.current.cluster is None
