"""Folders of a run: where each lies, and how a path is named."""

from pathlib import Path

import pytest

from cnslib.core import paths


def test_relative_paths_start_at_the_root_and_full_ones_stay():
    assert paths.resolve("data/models") == paths.MODELS and (paths.ROOT / "pyproject.toml").exists()
    assert paths.resolve("/elsewhere/models") == Path("/elsewhere/models")


def test_a_message_names_a_path_from_the_root_where_it_lies_there(tmp_path):
    assert paths.shown(paths.ROOT / "params.yaml") == "params.yaml"
    assert paths.shown(tmp_path / "params.yaml") == str(tmp_path / "params.yaml")


@pytest.mark.parametrize("name", ["figures", "metrics", "executed"])
def test_a_run_has_folders_of_its_own_which_are_there_when_they_are_asked_for(tmp_path, name):
    layout = paths.Layout(str(tmp_path / "run"), "accuracy")
    wanted = {"figures": tmp_path / "run" / "figures" / "accuracy"}.get(name, tmp_path / "run" / name)
    assert getattr(layout, name) == wanted and wanted.is_dir()
    assert layout.artifacts("sliders") == tmp_path / "run" / "artifacts" / "sliders"


def test_artifacts_are_those_of_the_run_and_everything_else_lies_under_the_root(tmp_path):
    layout = paths.Layout(str(tmp_path))
    assert layout.locate("artifacts/sliders") == tmp_path / "artifacts" / "sliders"
    assert layout.locate("data/photos") == paths.PHOTOS
    assert paths.Layout(".").locate("artifacts/sliders") == paths.ROOT / "artifacts" / "sliders"
