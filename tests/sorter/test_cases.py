"""Histories as text: commands in, ----, what left. `--rewrite` writes down what leaves now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.events import DELETE, PUT, KvChange
from tidemill.testing import cases

from .rig import ENGINES, Rig, parts

VERBS = {DELETE: "delete", PUT: "put"}
CASES = sorted(Path(__file__).parent.glob("cases/*.txt"))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, make_rig, engine, rewrite):
    rig = make_rig(**engine)
    cases.expect_history(path, lambda commands: play(rig, commands), rewrite and engine is ENGINES["memory"])


def play(rig: Rig, commands: str) -> str:
    """Run one block's commands, then the actors; what left since the last block."""
    before = len(rig.received)
    for line in commands.splitlines():
        command(rig, *line.split())
    rig.run(2)
    left = [str(failed.error) for failed in rig.failures]
    for message in rig.received[before:]:
        for part in parts(message):
            changes = [f"{VERBS[c.op]} {c.key.decode()} of {c.region_id}" for c in part.changes]
            more = "" if part.last else " ..."
            left.append(f"{part.start_ts}-{part.commit_ts}: {', '.join(changes)}{more}")
    if rig.received[before:]:
        left.append(f"resolved {rig.received[-1].resolved}")
    return "\n".join(left) or "nothing"


def command(rig: Rig, table: str, verb: str, *words: str) -> None:
    match verb, words:
        case "joins", ("above", ts):
            rig.add(int(table), resolved=int(ts))
        case "leaves", ():
            rig.remove(int(table))
        case (("put" | "delete"), (key, span)):
            start_ts, _, commit_ts = span.partition("-")
            op = PUT if verb == "put" else DELETE
            rig.tell(int(table), [KvChange(int(commit_ts), int(start_ts), op, key.encode(), b"")])
        case "resolved", (ts,):
            rig.tell(int(table), resolved=int(ts))
        case _:
            raise ValueError(f"no such command: {table} {verb} {' '.join(words)}")
