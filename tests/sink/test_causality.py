"""The order that keys require, as cases of text: which transactions may run, and where the checkpoint is.

A line `5 a b reads c` is a transaction with commit ts 5 that writes a and b, and reads c.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.events import Checkpoint
from tidemill.sink.sql.parallel.causality import Causality
from tidemill.sink.sql.parallel.unit import Unit
from tidemill.testing.cases import Case, load, title

CASES = load(Path(__file__).with_name("causality.txt"))


def play(commands: str) -> str:
    causality = Causality()
    units: dict[int, Unit] = {}
    said = []
    for line in commands.splitlines():
        word, *rest = line.split()
        if word.isdigit():
            keys, _, reads = " ".join(rest).partition("reads ")
            ts = int(word)
            at = Checkpoint(ts, f"log:{ts}")
            unit = Unit(len(units) + 1, ts, [], at, map(hash, keys.split()), map(hash, reads.split()))
            units[ts] = unit
            causality.add(unit, done=rest == ["done"])
            continue
        named = [units[int(ts)] for ts in rest if ts.isdigit()]
        match word:
            case "take":
                most = [int(number) for number in rest] + [100] * (2 - len(rest))
                taken = causality.take(*most, 1000)
                said.append(f"taken {' '.join(str(unit.ts) for unit in taken) or 'nothing'}")
            case "commit":
                causality.commit(named)
                prefix = causality.prefix
                said.append(f"complete to {prefix.ts if prefix else 'nothing'}")
            case "back" | "hold":
                causality.give_back(named, hold=word == "hold")
            case "with":
                prefix = causality.prefix_with(named)
                said.append(f"with these complete to {prefix.ts if prefix else 'nothing'}")
    return "\n".join(said)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_causality(case: Case, rewrite: bool) -> None:
    case.expect(play(case.commands), rewrite)
