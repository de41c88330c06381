"""When a drainer saves its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.sink.drainer.saves import SaveSchedule
from tidemill.testing.cases import load, title


def play(commands):
    now, output = 0.0, []

    def save(ts, secondary_ts, *, schema_version):
        target = f" target={secondary_ts}" if secondary_ts else ""
        version = f" version={schema_version}" if schema_version else ""
        output.append(f"save {ts}{target}{version}")

    schedule = SaveSchedule(save, lambda: now)
    for line in commands.splitlines():
        word, *rest = line.split()
        options = {name: int(value) for name, _, value in (each.partition("=") for each in rest[1:])}
        match word:
            case "time":
                now += float(rest[0])
            case "finish":
                schedule.finish()
            case _:
                schedule.success(
                    int(rest[0]),
                    ddl=word == "ddl",
                    applied_ts=options.get("target", 0),
                    schema_version=options.get("version", 0),
                )
    return "\n".join(output)


@pytest.mark.parametrize("case", load(Path(__file__).with_name("saves.txt")), ids=title)
def test_a_checkpoint_is_saved(case, rewrite):
    case.expect(play(case.commands), rewrite)
