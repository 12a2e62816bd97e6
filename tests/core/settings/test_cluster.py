"""Files of workers: each that is ready to be used is accepted, and what is not is told in one line."""

from pathlib import Path

import pytest

from cnslib.core import clusters, paths
from cnslib.core.settings import read

FILES = sorted((paths.ROOT / "clusters").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_ready_file_is_what_parsl_accepts(path, tmp_path):
    """The classes that it names, and every option of them."""
    pytest.importorskip("parsl")
    cluster = read.load(path)["cluster"]
    executor = clusters.configuration(cluster, tmp_path).executors[0]
    assert type(executor.provider).__name__ == cluster.provider
    assert executor.max_workers_per_node == cluster.workers
    assert len(executor.available_accelerators) == (cluster.workers if cluster.card_each else 0)
    given = {key: value for key, value in cluster.options.items() if value != "" and hasattr(executor.provider, key)}
    assert {key: getattr(executor.provider, key) for key in given} | {"walltime": 0} == given | {"walltime": 0}


def test_there_is_one_for_each_way_that_the_readme_names():
    assert [path.stem for path in FILES] == ["local-gpu", "local", "slurm", "template"]


def written(tmp_path, old: str, new: str) -> Path:
    text = (paths.ROOT / "clusters" / "local.yaml").read_text()
    assert old in text
    (tmp_path / "mine.yaml").write_text(text.replace(old, new))
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("retries: 2", "retries: -1", r"cluster\.retries: -1 is not accepted; accepted: greater than or equal to 0"),
        ("retries: 2", "tries: 2", r"unknown key cluster\.tries; accepted: provider, options, launcher, workers"),
        ("workers: 2", "workers: 0", r"cluster\.workers: 0"),
    ],
)
def test_a_key_that_is_not_accepted_is_named(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        read.load(written(tmp_path, old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("LocalProvider", "LocalProvide", r"cluster\.provider: 'LocalProvide' is not accepted; accepted: .*SlurmProvider"),
        ("SingleNodeLauncher", "Launch", r"cluster\.launcher: 'Launch' is not accepted; accepted: .*SrunLauncher"),
        ("max_blocks", "most_blocks", r"cluster\.options: .* is not accepted by LocalProvider: .*most_blocks"),
    ],
)
def test_what_parsl_does_not_know_is_named_with_its_key(tmp_path, old, new, message):
    pytest.importorskip("parsl")
    with pytest.raises(ValueError, match=message):
        clusters.configuration(read.load(written(tmp_path, old, new))["cluster"], tmp_path)


def test_a_file_of_parameters_is_no_file_of_workers(tmp_path):
    base = read.load(paths.ROOT / "params.yaml")["base"]
    text = (paths.ROOT / "params.yaml").read_text().replace('workers: ""', 'workers: "params.yaml"')
    (tmp_path / "params.yaml").write_text(text)
    assert base.workers == "" and read.cluster(base) is None
    with pytest.raises(ValueError, match=r"base\.workers: params\.yaml holds base, world, .*; accepted: the section cluster alone"):
        read.start("sliders", str(tmp_path / "params.yaml"))
