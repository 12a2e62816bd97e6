import sys

import pytest

from cnslib.tools import cli


@pytest.fixture
def told(monkeypatch, capsys):
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["cns", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    return run


def test_the_help_lists_every_command_and_what_is_none_is_refused(told):
    status, said = told("--help")
    assert status == 0 and all(f"\n  {name} " in said for name in cli.COMMANDS)
    status, said = told("draw")
    assert status == 2 and "invalid choice: 'draw'" in said and "'reproduce'" in said and "'lab'" in said
