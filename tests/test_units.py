"""Units of work: atomic writes, digests, pruning."""

import types
from dataclasses import dataclass

import pytest

from cnslib import units


@dataclass(frozen=True)
class Settings:
    rank: int


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "table.txt"
    units.write_bytes(path, b"old")
    with pytest.raises(RuntimeError), units.atomic(path) as partial:
        partial.write_bytes(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_unit_is_done_only_with_its_digest_and_its_bytes(tmp_path):
    path = tmp_path / "unit"
    path.write_bytes(b"result")
    assert not units.done(path, "a")
    units.finish(path, "a")
    assert units.done(path, "a") and not units.done(path, "b")
    path.write_bytes(b"damaged")
    assert not units.done(path, "a")


def test_digests_depend_on_values_and_not_on_key_order():
    assert units.digest({"a": 1, "b": 2.0}) == units.digest({"b": 2.0, "a": 1})
    assert units.digest(Settings(4)) != units.digest(Settings(8))
    with pytest.raises(TypeError):
        units.digest(object())


def test_directory_digest_sees_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    before = units.directory_digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert units.directory_digest(tmp_path) != before


def test_prose_does_not_change_code():
    code = 'def f(x):\n    """Doubles."""\n    return 2 * x  # twice\n'
    assert units.code_only(code) == units.code_only("def f(x):\n    return 2*x\n")
    assert units.code_only(code) != units.code_only("def f(x):\n    return 3*x\n")


def test_code_digest_names_the_module():
    assert units.code_digest(units) != units.code_digest(types)


def test_prune_deletes_what_is_not_asked_for_with_its_digest(tmp_path):
    for name in ("keep.txt", "drop.txt"):
        units.write_bytes(tmp_path / name, b"x")
        units.finish(tmp_path / name, "d")
    assert units.prune(tmp_path, {"keep.txt"}, "*.txt") == ["drop.txt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["keep.txt", "keep.txt.digest"]
