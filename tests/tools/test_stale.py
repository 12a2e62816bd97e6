"""The list of units that older code made."""

from cnslib.core import kinds, units
from cnslib.tools import stale


def unit(folder, name):
    found = units.Unit(folder / name, kinds.TOKENS.stamp(name))
    found.path.write_text(name)
    found.finish()
    return found


def test_units_of_older_code_and_of_earlier_recipes_are_listed(tmp_path, capsys):
    present, older, earlier, bare = (unit(tmp_path, name) for name in ("present", "older", "earlier", "bare"))
    record = units.sidecar(older.path)
    record.write_text(record.read_text().replace(kinds.TOKENS.source, "0" * 64))
    record = units.sidecar(earlier.path)
    record.write_text(record.read_text().replace(str(kinds.TOKENS), "tokens-0"))
    record = units.sidecar(bare.path)
    record.write_text(" ".join(record.read_text().split()[:2]))
    stale.main([str(tmp_path)])
    said = capsys.readouterr().out
    assert f"{kinds.TOKENS}: 1 units, {stale.CODE}\n  older\n" in said and f"tokens-0: 1 units, {stale.EARLIER}\n  earlier\n" in said
    assert f"no recipe: 1 units, {stale.EARLIER}\n  bare\n" in said and "present" not in said and present.done


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys):
    assert stale.main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere' is not accepted; accepted: a folder with units" in capsys.readouterr().err


def test_nothing_to_list_is_said_in_one_line(tmp_path, capsys):
    unit(tmp_path, "present")
    stale.main([str(tmp_path)])
    assert capsys.readouterr().out == f"Every unit under {tmp_path} was made by the present code.\n"
