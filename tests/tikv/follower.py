"""A feed in a process of its own that looks at a large transaction as it comes, and keeps nothing of it.

As a program it takes the feed's tables as JSON and follows `many.*` from the text "begin" in one row to the
text "end" in another. It prints a line of JSON at each of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.events import Item, Transaction
from tidemill.puller.tikv.match.spill import PrewriteMemory
from tidemill.sink.python import python_sink


class Looker:
    """Takes items; the rows of the transactions in between have the keys 0, 1, … in this order."""

    def __init__(self, table: str, text_bytes: int) -> None:
        self.ended = Event()
        self.rows = 0
        self.parts = 0
        self.wrong: list[str] = []
        self._table = table
        self._text_bytes = text_bytes
        self._commit_ts = 0
        self._open = False

    def __call__(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Transaction) and item.rows:
                self._look(item)
            elif isinstance(item, Transaction) and self._open and item.commit_ts == self._commit_ts:
                self._open = not item.last

    def _look(self, txn: Transaction) -> None:
        row = txn.rows[0]
        if row.after is not None and row.after[1] == "begin":
            say({"ready": True})
        elif row.after is not None and row.after[1] == "end":
            if self._open:
                self.wrong.append("the last part was not the last")
            self.ended.set()
        else:
            self._take(txn)

    def _take(self, txn: Transaction) -> None:
        if self.parts and not self._open:
            self.wrong.append(f"part {self.parts} came after the last")
        if self.parts and txn.commit_ts != self._commit_ts:
            self.wrong.append("two transactions")
        self._commit_ts, self._open = txn.commit_ts, not txn.last
        self.parts += 1
        for number, row in enumerate(txn.rows, self.rows):
            after = row.after
            if (
                after is None
                or after[0] != number
                or row.table.full_name != self._table
                or after[1] != f"{number:x}-".ljust(self._text_bytes, "x")
            ):
                self.wrong.append(f"row {number} is {after}")
                break
        self.rows += len(txn.rows)
        del self.wrong[5:]


@contextmanager
def following(options: dict[str, Any], table: str, text_bytes: int) -> Iterator[subprocess.Popen[str]]:
    """The feed in its process. Its lines are on `stdout`."""
    arguments = json.dumps([options, table, text_bytes])
    with subprocess.Popen(
        [sys.executable, __file__, arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line."""
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def peak_bytes() -> int:
    """Of this program; the resource module's would be at least that of the process that started it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line[:6] == "VmHWM:")
    return int(line.split()[1]) * 1024


class Spilled:
    """Counts what prewrites that wait for their commit take on disk."""

    def __init__(self) -> None:
        self.blocks = 0
        write = PrewriteMemory.write

        def counted(shared: PrewriteMemory, blocks: Sequence[bytes]) -> Any:
            self.blocks += len(blocks)
            return write(shared, blocks)

        PrewriteMemory.write = counted  # type: ignore[method-assign]


def main() -> None:
    found, table, text_bytes = json.loads(sys.argv[1])
    options = feed_options(found)
    spilled, looker = Spilled(), Looker(table, text_bytes)
    feed = Feed(options, [python_sink("python", looker, checkpoint_file(options, "python"))])
    feed.start(on_end=looker.ended.set)
    looker.ended.wait()
    peak = peak_bytes()
    feed.stop()
    feed.wait()
    say(
        {
            "error": None if feed.error is None else str(feed.error),
            "rows": looker.rows,
            "parts": looker.parts,
            "wrong": looker.wrong,
            "prewrite_blocks": spilled.blocks,
            "peak_bytes": peak,
        }
    )


if __name__ == "__main__":
    main()
