"""Units of work: atomic writes, digests, records, shelves, pruning."""

import dataclasses
import json
import os
import pickle
import subprocess
from dataclasses import dataclass

import pytest

from cnslib.core import units

RECIPE = units.Recipe("tests", 1, ("cnslib.core.seeds",))


@dataclass(frozen=True)
class Settings:
    rank: int


def shelf_of(folder, keys):
    return units.Shelf(folder, {key: (f"{key}.txt", RECIPE.stamp(key, "")) for key in keys}, "*.txt")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "table.txt"
    units.write_bytes(path, b"old")
    with pytest.raises(RuntimeError), units.atomic(path) as partial:
        partial.write_bytes(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_unit_is_done_only_with_its_inputs_and_its_bytes(tmp_path):
    unit = units.Unit(tmp_path / "unit", RECIPE.stamp("a"))
    unit.path.write_bytes(b"result")
    assert not unit.done
    unit.finish()
    assert unit.done and not units.Unit(unit.path, RECIPE.stamp("b")).done
    unit.path.write_bytes(b"damaged")
    assert not unit.done


def test_a_raised_number_outdates_a_unit_and_changed_code_does_not(tmp_path):
    unit = units.Unit(tmp_path / "unit", RECIPE.stamp("a"))
    unit.path.write_bytes(b"result")
    unit.finish()
    rewritten = dataclasses.replace(RECIPE, modules=("cnslib.core.tables",))
    assert rewritten.source != RECIPE.source and units.done(unit.path, rewritten.stamp("a"))
    assert not units.done(unit.path, dataclasses.replace(RECIPE, number=2).stamp("a"))


def test_a_record_without_a_recipe_is_outdated(tmp_path):
    unit = units.Unit(tmp_path / "unit", RECIPE.stamp("a"))
    unit.path.write_bytes(b"result")
    units.sidecar(unit.path).write_text(f"{units.digest('a')} {units.file_digest(unit.path)}\n")
    assert not unit.done


def test_the_record_tells_stamp_bytes_recipe_and_source(tmp_path):
    unit = units.Unit(tmp_path / "unit", RECIPE.stamp("a"))
    unit.path.write_bytes(b"result")
    unit.finish()
    assert units.sidecar(unit.path).read_text().split() == [RECIPE.stamp("a"), units.file_digest(unit.path), "tests-1", RECIPE.source]


def test_a_stamp_keeps_its_recipe_on_the_way_to_another_process():
    stamp = RECIPE.stamp("a")
    again = pickle.loads(pickle.dumps(stamp))
    assert again == stamp and again.recipe == RECIPE and json.dumps(stamp) == f'"{stamp}"'


def test_a_shelf_asks_for_what_is_missing_damaged_or_outdated_and_deletes_the_rest(tmp_path):
    shelf = shelf_of(tmp_path, "abcd")
    for key in shelf.waiting():
        shelf[key].path.write_text(key)
        shelf[key].finish()
    assert shelf.waiting() == []
    shelf["a"].path.unlink()
    shelf["b"].path.write_text("damaged")
    leftovers = [tmp_path / "old.txt", tmp_path / "old.txt.digest", tmp_path / ".c.txt.123.partial"]
    for path in leftovers:
        path.write_text("left")
    stamps = {key: (f"{key}.txt", RECIPE.stamp(key, "new" if key == "c" else "")) for key in "abcd"}
    assert units.Shelf(tmp_path, stamps, "*.txt").waiting() == ["a", "b", "c"]
    assert not any(path.exists() for path in leftovers) and shelf["d"].done
    units.sidecar(shelf["d"].path).write_bytes(b"\xff\xfe")
    assert units.Shelf(tmp_path, {"d": ("d.txt", shelf["d"].made_from)}, "*.txt").waiting() == ["d"]


def test_a_killed_run_loses_one_unit(tmp_path):
    """Killed between the bytes and the record of the third of four."""
    shelf = shelf_of(tmp_path, "abcd")
    for key in "abc":
        shelf[key].path.write_text(key)
        if key != "c":
            shelf[key].finish()
    assert shelf.waiting() == ["c", "d"]


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
    assert units.definitions(code) == units.definitions("def f(x):\n    return 2*x\n")
    assert units.definitions(code) != units.definitions("def f(x):\n    return 3*x\n")


def test_code_that_moves_is_the_same_code(tmp_path, monkeypatch):
    (tmp_path / "room_one.py").write_text('"""One."""\nfrom room_two import half\n\ndef f(x):\n    return half(x)\n')
    (tmp_path / "room_two.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "room_three.py").write_text("import numpy\n\ndef half(x):\n    return x / 2\n\ndef f(x):\n    return half(x)\n")
    (tmp_path / "room_four.py").write_text("import room_two\n\ndef f(x):\n    return room_two.half(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    apart, together = units.source_digest(("room_one", "room_two")), units.source_digest(("room_three",))
    assert apart == together == units.source_digest(("room_two", "room_four")) != units.source_digest(("room_two",))


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"module cnslib\.nowhere"):
        units.source_digest(("cnslib.nowhere",))


def test_prune_deletes_what_is_not_asked_for_with_its_digest(tmp_path):
    for name in ("keep.txt", "drop.txt"):
        units.write_bytes(tmp_path / name, b"x")
        units.finish(tmp_path / name, RECIPE.stamp("d"))
    assert units.prune(tmp_path, {"keep.txt"}, "*.txt") == ["drop.txt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["keep.txt", "keep.txt.digest"]


def test_bytes_that_are_not_those_of_the_record_are_named(tmp_path):
    unit = units.Unit(tmp_path / "unit", RECIPE.stamp("a"))
    with pytest.raises(FileNotFoundError, match="unit does not exist"):
        units.verified(unit.path)
    units.write_bytes(unit.path, b"result")
    assert units.verified(unit.path, required=False) == units.file_digest(unit.path)
    with pytest.raises(ValueError, match=r"unit has no record unit\.digest of its bytes"):
        units.verified(unit.path)
    unit.finish()
    unit.require()
    with pytest.raises(ValueError, match="unit was made from other inputs or parameters"):
        units.Unit(unit.path, RECIPE.stamp("b")).require()
    unit.path.write_bytes(b"resulu")
    for ask in (unit.require, lambda: units.verified(unit.path), lambda: units.verified(unit.path, required=False)):
        with pytest.raises(ValueError, match="unit is not as it was written"):
            ask()


def test_a_sealed_file_is_no_unit(tmp_path):
    units.write_sealed(tmp_path / "table", b"x")
    assert units.sealed(tmp_path / "table") and units.verified(tmp_path / "table")
    assert not units.done(tmp_path / "table", RECIPE.stamp("a"))


def test_a_file_is_hashed_once_and_again_when_it_was_touched(tmp_path, monkeypatch):
    path = tmp_path / "old"
    path.write_bytes(b"one")
    monkeypatch.setattr(units, "YOUNG", -1)
    first, opened = units.file_digest(path), []
    plain = units.hashlib.file_digest
    monkeypatch.setattr(units.hashlib, "file_digest", lambda stream, name: opened.append(1) or plain(stream, name))
    assert units.file_digest(path) == first and not opened
    path.with_name("other").write_bytes(b"two")
    path.with_name("other").replace(path)
    assert units.file_digest(path) != first and opened == [1]


def test_a_file_of_this_moment_is_hashed_every_time(tmp_path):
    """Two writes of equal length within one tick of the clock look the same from outside."""
    path = tmp_path / "new"
    found = set()
    for number in range(50):
        path.write_bytes(b"%02d" % number)
        found.add(units.file_digest(path))
    assert len(found) == 50


def test_what_a_killed_process_left_of_a_file_goes_with_the_next_writing_of_it_and_a_living_ones_stays(tmp_path):
    """A figure that a killed step was drawing stood half written beside the finished one: `make kill` found it."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, living, other = (tmp_path / f".{name}.partial" for name in (f"a.pdf.{gone.pid}", f"a.pdf.{os.getppid()}", f"b.pdf.{gone.pid}"))
    for path in (left, living, other):
        path.write_bytes(b"half")
    units.write_bytes(tmp_path / "a.pdf", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.pdf", living.name, other.name])
