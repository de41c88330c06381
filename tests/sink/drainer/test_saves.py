"""When a drainer saves its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.actors import ManualClock
from tidemill.sink.drainer.file import DrainerFile
from tidemill.testing.cases import load, title


class Noting(DrainerFile):
    def __init__(self, clock):
        super().__init__(Path("unused"), clock)
        self.output = []

    def save(self, commit_ts):
        self.output.append(f"save {commit_ts}")


def play(commands):
    clock = ManualClock()
    file = Noting(clock)
    for line in commands.splitlines():
        match line.split():
            case ["time", seconds]:
                clock.advance(float(seconds))
            case ["finish"]:
                file.finish()
            case [word, ts]:
                file.success(int(ts), ddl=word == "ddl")
    return "\n".join(file.output)


@pytest.mark.parametrize("case", load(Path(__file__).with_name("saves.txt")), ids=title)
def test_a_checkpoint_is_saved(case, rewrite):
    case.expect(play(case.commands), rewrite)
