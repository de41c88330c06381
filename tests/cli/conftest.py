import sys

import pytest

from tidemill import cli


@pytest.fixture
def call(monkeypatch, capsys):
    """Run a command; its status, what it printed, and what it said on stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tidemill", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run
