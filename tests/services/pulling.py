"""A puller on a real server, and copies of its tables made of what it sends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Condition
from types import TracebackType
from typing import Any, Self

from tidemill.actors import ActorSystem, Failed, PooledActor
from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.blocks import block_of
from tidemill.codec.mysql.entry import COMMIT
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.position import Position
from tidemill.engine.checkpoint import lowest
from tidemill.events import (
    AddColumn,
    Changes,
    Checkpoint,
    CreateTable,
    DropTable,
    Item,
    KvChange,
    Row,
    RowChange,
    Sorted,
    Transaction,
    TruncateTable,
)
from tidemill.mounter import Mounter
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.puller import MysqlPuller
from tidemill.puller.mysql.stop_signal import StopSignal
from tidemill.puller.puller import PullerStatistics, Retrying
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import STALL_SECONDS, changed_to
from tidemill.testing.resumed import Resumed

VERSIONED_BY_TRANSACTIONS = (
    "(id INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, "
    "e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING"
)
"""Columns of a table that can't be followed: its changes are logged as statements."""


class Copy:
    """A target in memory. Like one whose process is killed, it takes nothing in after `ends` was true."""

    def __init__(self, ends: Callable[[Item], bool] = lambda item: False) -> None:
        self.checkpoint: Checkpoint | None = None
        self.tables: dict[str, Counter[Row]] = {}
        self.ends = ends
        self.restart()

    def restart(self, ends: Callable[[Item], bool] = lambda item: False) -> None:
        self.ends = ends
        self.ended = False
        self._filter = Resumed(self.checkpoint)
        self._open: list[Item] = []

    def take(self, item: Item) -> None:
        if self.ended or ((admitted := self._filter.admit(item)) is None and not item.last):
            return
        if admitted is not None:
            self._open.append(admitted)
        if item.last:
            for part in self._open:
                self._apply(part)
            self._open = []
            self.checkpoint = self._filter.checkpoint
            self.ended = self.ends(item)

    def _apply(self, item: Item) -> None:
        if isinstance(item, Transaction):
            for row in item.rows:
                self._change(row)
            return
        assert not item.refusal, item
        for action in item.actions:
            match action:
                case CreateTable():
                    self.tables[item.full_name] = Counter()
                case AddColumn():
                    rows = self.tables[item.full_name]
                    self.tables[item.full_name] = Counter({(*row, None): n for row, n in rows.items()})
                case DropTable():
                    self.tables.pop(item.full_name, None)
                case TruncateTable():
                    self.tables[item.full_name].clear()
                case _:
                    raise NotImplementedError(action)

    def _change(self, change: RowChange) -> None:
        rows = self.tables[change.table.full_name]
        if change.before is not None:
            assert rows[change.before] > 0, f"{change} of a row that isn't there"
            rows[change.before] -= 1
        if change.after is not None:
            rows[change.after] += 1
            if change.table.key:
                assert rows[change.after] == 1, f"{change} of a row that is there"


class Collector(PooledActor):
    """Stands in the sorter's place. What it gets it keeps, and gives to the copies."""

    def __init__(self, pulling: Pulling) -> None:
        super().__init__()
        self._pulling = pulling

    def on_receive(self, message: Any) -> None:
        self._pulling.hear(message)


class Pulling:
    """A puller at work until the end of the `with` block.

    `hold_once` makes its output full, so that it stops reading, until `release()`. `hold_at` may be called
    before the block, so that nothing is missed.
    """

    def __init__(
        self,
        server: PrivateServer,
        *patterns: str,
        copies: Sequence[Copy] = (),
        start: Checkpoint | None = None,
        **options: Any,
    ) -> None:
        self.options = MysqlOptions(port=server.port, password=PASSWORD, heartbeat_seconds=0.2)
        self.options = replace(self.options, **options)
        self.batches: list[Changes] = []
        self.messages: list[Any] = []
        self.statistics: PullerStatistics | None = None
        self.items: list[Item] = []
        self.error: BaseException | None = None
        self.resolved = 0
        self._rows = 0
        self._changed = Condition()
        self._held = False
        self._trap: Callable[[], object] | None = None
        self._copies = copies
        self._filter = TablePatterns.parse(list(patterns))
        self._layouts = Layouts()
        copies_generated = self.options.copies_generated
        self._mounter = Mounter(self._layouts, "test", self._filter, copies_generated=copies_generated)
        self.catalog = self._mounter.catalog
        self._pending: defaultdict[int, list[KvChange]] = defaultdict(list)
        found = [copy.checkpoint for copy in copies]
        self._start = start or lowest(found, order=lambda text: Position.parse(text).rank)
        self._sink_checkpoints = [at for at in found if at is not None and at.position]

    def __enter__(self) -> Self:
        self._stop = StopSignal()
        self._system = ActorSystem("blocking", workers=3)
        coordinator = self._system.spawn(Collector, self, name="coordinator")
        collector = self._system.spawn(Collector, self, capacity=1, supervisor=coordinator, name="output")
        self.puller = self._system.spawn(
            MysqlPuller,
            self.options,
            self._filter.matches,
            self._layouts,
            collector,
            coordinator=coordinator,
            start=self._start,
            sink_checkpoints=self._sink_checkpoints,
            stop=self._stop,
            publish=self._note,
            supervisor=coordinator,
            name="puller",
        )
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self.puller.stop(block=False)
        self._stop.set()
        self._system.stop(timeout=STALL_SECONDS)
        if error is None and self.error is not None and not self._expected:
            raise self.error

    _expected = False

    def _note(self, statistics: PullerStatistics) -> None:
        with self._changed:
            self.statistics = statistics
            self._changed.notify_all()

    def hold_once(self, what: Callable[[], object]) -> None:
        """Wait until `what()` is true, and hold then."""
        self.hold_at(what)
        self.wait_until_held()

    def hold_at(self, what: Callable[[], object]) -> None:
        """Hold as soon as `what()` is true."""
        with self._changed:
            self._trap = what
            self._spring()

    def wait_until_held(self) -> None:
        self.wait_for(lambda: self._held)

    def _spring(self) -> None:
        if self._trap is not None and self._trap():
            self._held, self._trap = True, None

    def release(self) -> None:
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def hear(self, message: Any) -> None:
        with self._changed:
            if isinstance(message, Changes):
                self._changed.wait_for(lambda: not self._held)
                self.batches.append(message)
                self._mount(message)
            elif isinstance(message, Failed):
                self.error = message.error
            else:
                self.messages.append(message)
            self._spring()
            self._changed.notify_all()

    def _mount(self, changes: Changes) -> None:
        for change in changes.changes:
            assert change.commit_ts > self.resolved
            self._rows += change.key[8] != COMMIT
            self._pending[change.commit_ts].append(change)
        assert changes.resolved >= self.resolved
        self.resolved = changes.resolved
        for ts in sorted(ts for ts in self._pending if ts <= self.resolved):
            made = sorted(self._pending.pop(ts), key=lambda change: change.key)
            assert len({change.key for change in made}) == len(made)
            for item in self._mounter.mount(Sorted(block_of(made), ts)):
                self.items.append(item)
                for copy in self._copies:
                    copy.take(item)

    def _moved(self) -> object:
        """The changes that have come, without the commits by which an idle source says that it is alive."""
        return self._rows, [message for message in self.messages[-1:] if not isinstance(message, Retrying)]

    def wait_for(self, what: Callable[[], object]) -> None:
        """Until `what()` is true; raises the puller's error if that comes first."""
        with self._changed:
            changed_to(self._changed, lambda: what() or self.error, self._moved)
        if self.error is not None:
            raise self.error

    def count(self, kind: type) -> int:
        """How many messages of a kind the coordinator was told."""
        return sum(isinstance(message, kind) for message in self.messages)

    def wait_until_told(self, kind: type, times: int = 1) -> None:
        self.wait_for(lambda: self.count(kind) >= times)

    def wait_for_error(self) -> BaseException:
        """The error that ended the puller."""
        with self._changed:
            self._expected = True
            changed_to(self._changed, lambda: self.error, self._moved)
        assert self.error is not None
        return self.error

    def catch_up(self, end: Position) -> None:
        """Until all copies have everything up to `end`, the snapshot included."""

        def there(at: Checkpoint | None) -> bool:
            return at is not None and at.loading is None and Position.parse(at.position).rank >= end.rank

        self.wait_for(lambda: all(there(copy.checkpoint) or copy.ended for copy in self._copies))


def binlog_end(server: MariaDb) -> Position:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchall()[0][:2]
        return Position(file, offset)


def mysql_end(server: PrivateServer) -> Position:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        file, offset = cursor.fetchall()[0][:2]
        return Position(file, offset)


def source_rows(server: PrivateServer, database: str) -> dict[str, Counter[Row]]:
    """Return the rows of the tables of `database`."""
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        found = {}
        for (name,) in cursor.fetchall():
            cursor.execute(f"SELECT * FROM `{name}`")
            found[f"{database}.{name}"] = Counter(cursor.fetchall())
        return found


def rows_of(copy: Copy) -> dict[str, Counter[Row]]:
    return {name: +rows for name, rows in copy.tables.items()}
