"""Cases of the lock of a merged table among feeds, transition by transition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.errors import TidemillError
from tidemill.events import Column, Table
from tidemill.sharding import shared_lock
from tidemill.sharding.shared_lock import BeingExecuted, ShardReport, SharedLock
from tidemill.testing.cases import Case, load, title

CASES = load(Path(__file__).with_name("shared_lock.txt"))


def table_of(columns: str) -> Table:
    """Return the merged table with these columns after its key."""
    names = filter(None, columns.split(","))
    return Table(
        "t", "all", (Column("id", "int", nullable=False), *(Column(one, "int") for one in names)), (0,)
    )


class Play:
    """Each command is a transition of one lock; its name is that of the function."""

    def __init__(self) -> None:
        self.lock: SharedLock | None = None
        self.lines: list[str] = []

    def run(self, command: str) -> None:
        self.lines.append(command)
        word, *rest = command.split(" ")
        try:
            self.lock = getattr(self, f"do_{word}")(*rest)
        except (TidemillError, BeingExecuted) as error:
            self.lines.append(f"  {type(error).__name__}: {error}")
        else:
            self._show()

    def _show(self) -> None:
        lock = self.lock
        assert lock is not None
        columns = ",".join(column.name for column in lock.table.columns)
        feeds = ", ".join(f"{feed} {number}" for feed, number in lock.feeds.items())
        self.lines.append(f"  {lock.number}: {columns}; passed: {feeds or 'by none'}")
        for change in lock.changes:
            excused = f", excused {', '.join(change.excused)}" if change.excused else ""
            forced = f" by force, {change.forced}" if change.forced else ""
            unsynced = ", ".join(lock.unsynced(change)) or "none"
            self.lines.append(
                f"    {change.number} {change.form} {change.step}{forced}: "
                f"owner {change.owner}, made by {', '.join(change.reports)}{excused}, waits for {unsynced}"
            )

    # --- commands

    def do_join(self, feed: str, columns: str = "") -> SharedLock:
        return shared_lock.join(self.lock, feed, table_of(columns))

    def do_rejoin(self, feed: str, number: str, columns: str = "") -> SharedLock:
        return shared_lock.rejoin(self.lock, feed, int(number), table_of(columns))

    def do_lost(self) -> None:
        """The store was emptied."""

    def do_report(self, feed: str, number: str, form: str, partial: str = "") -> SharedLock:
        said = ShardReport(f"{feed}.x", f"ALTER {feed}.x {form}", 0.0, is_partial=bool(partial))
        return shared_lock.report(self._there, feed, int(number), form, said)

    def do_take(self, feed: str, number: str, columns: str) -> SharedLock:
        return shared_lock.take(self._there, feed, int(number), table_of(columns))

    def do_passed(self, feed: str, number: str, columns: str) -> SharedLock:
        return shared_lock.passed(self._there, feed, int(number), table_of(columns))

    def do_excuse(self, feed: str, number: str) -> SharedLock:
        return shared_lock.excuse(self._there, feed, int(number))

    def do_force(self, number: str, action: str, owner: str = "") -> SharedLock:
        return shared_lock.force(self._there, int(number), action, owner)  # type: ignore[arg-type]

    def do_running(self, number: str, *feeds: str) -> SharedLock:
        """Excuse the feeds that don't run."""
        return shared_lock.excuse_stopped(self._there, int(number), feeds)

    def do_remove(self, feed: str) -> SharedLock:
        return shared_lock.remove(self._there, feed)

    @property
    def _there(self) -> SharedLock:
        assert self.lock is not None
        return self.lock


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_case(case: Case, rewrite: bool) -> None:
    play = Play()
    for command in case.commands.splitlines():
        play.run(command)
    case.expect("\n".join(play.lines), rewrite)
