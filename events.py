"""The types that stages exchange.

Raw changes (`KvChange`) contain a source's bytes until they are in commit order; then the mounter decodes
them into rows. Stages pass on lists of them, never single ones.

Timestamps are TiDB TSOs: physical milliseconds << 18 | logical counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, overload

from msgspec import Struct

from .errors import CheckpointError

Ts: TypeAlias = int
LOGICAL_BITS: Final = 18
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

DELETE: Final = 0
PUT: Final = 1


def compose_ts(physical_ms: int, logical: int = 0) -> Ts:
    """Return the TSO of a time in Unix milliseconds."""
    return physical_ms << LOGICAL_BITS | logical


def physical_ms(ts: Ts) -> int:
    """Return the Unix milliseconds of a TSO."""
    return ts >> LOGICAL_BITS


def parse_ts(text: str) -> Ts:
    """Return the TSO that a TiKV position is. Raises CheckpointError for anything but digits."""
    if not text.isascii() or not text.isdecimal():
        raise CheckpointError(f"{text!r} is not a position of TiKV: a TSO is a number")
    return int(text)


def timestamp(ts: Ts) -> datetime:
    """Return the time of a TSO, to the millisecond, as an aware datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=physical_ms(ts))


# --- before the mounter: bytes -------------------------------------------------------------------


class KvChange(Struct, frozen=True, gc=False, order=True, array_like=True):
    """One raw change. The fields are in sort order: comparing two changes is the commit order."""

    commit_ts: Ts
    start_ts: Ts
    op: int
    """DELETE or PUT; a DELETE sorts before a PUT of the same transaction."""
    key: bytes
    value: bytes
    old_value: bytes = b""
    region_id: int = 0
    """TiKV: the region it came from. Binlog: the table layout its rows are written in."""


class Changes(Struct, frozen=True, gc=False):
    """From a puller to a table's Writer: changes in any order, and a resolved ts.

    All changes at or below `resolved` have been sent, including these; 0 leaves the resolved ts as it is.
    """

    changes: list[KvChange]
    resolved: Ts = 0


class Sorted(Struct, frozen=True, gc=False):
    """From the sorter onward: changes in commit order; nothing at or below `resolved` will follow.

    A transaction is all changes of one commit ts and start ts. Changes of the same commit ts come together,
    unless they are larger than memory.
    """

    changes: list[KvChange]
    resolved: Ts
    continues: bool = False
    """True if more changes of the last commit ts may follow, of the same transaction or others. The next
    Sorted begins with them if there are any."""


# --- after the mounter: rows ---------------------------------------------------------------------

Kind: TypeAlias = Literal[
    "tinyint", "smallint", "mediumint", "int", "bigint",
    "decimal", "float", "double", "bit",
    "char", "varchar", "text", "binary", "varbinary", "blob",
    "date", "time", "datetime", "timestamp", "year",
    "enum", "set", "json",
]  # fmt: skip


class Column(Struct, frozen=True):
    """A column and how its values appear in Python.

    Integers, year and bit are `int`; decimal is `Decimal`; float and double are `float` (a FLOAT is
    the exact double of its 32 bits); char, varchar, text, enum, set and json are `str` as the source
    prints them; binary, varbinary and blob are `bytes` (BINARY(n) padded to n); date is
    `datetime.date`; datetime is a naive `datetime.datetime`; timestamp is an aware one in UTC; time
    is `datetime.timedelta`. NULL is None. A date that Python can't represent ("0000-00-00") stays the `str`
    that the source prints. Index 0 of an enum, an invalid value, is `not_a_member` of its members.
    """

    name: str
    kind: Kind
    unsigned: bool = False
    length: int = 0
    """Characters of char and varchar, bytes of binary and varbinary, bits of bit; bytes of a length
    prefix (1 to 4) of text and blob; digits of a decimal."""
    scale: int = 0
    """Digits after the point: of a decimal, or the fraction of a second in a time type."""
    members: tuple[str, ...] = ()
    """The strings of an enum or set."""
    charset: str | None = None
    collation: str | None = None
    nullable: bool = True
    default: str | None = None
    """The DEFAULT clause as SQL text in the source's dialect; None if there is none."""
    on_update: str | None = None


def not_a_member(members: Sequence[str]) -> str:
    """Return the text of an enum's index 0, an invalid value.

    It is "", as the source prints it; if "" is a member, the first of "0", "00", … that isn't.
    """
    text = ""
    while text in members:
        text += "0"
    return text


class Table(Struct, frozen=True):
    """A table's name and columns, at one version of its schema."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    """Indexes of the primary key's columns in key order; empty for a table without one."""
    charset: str | None = None
    collation: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


Row: TypeAlias = tuple[Any, ...]
"""The values of one row, in the order of its table's columns."""


Op: TypeAlias = Literal["insert", "update", "delete"]


class RowChange(Struct, frozen=True, gc=False):
    """One row's change: insert has `after`, delete has `before`, update has both."""

    commit_ts: Ts
    start_ts: Ts
    table: Table
    op: Op
    before: Row | None
    after: Row | None

    def before_dict(self) -> dict[str, Any] | None:
        return _named(self.table, self.before)

    def after_dict(self) -> dict[str, Any] | None:
        return _named(self.table, self.after)


def _named(table: Table, row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {c.name: v for c, v in zip(table.columns, row, strict=True)}


class Run(Struct, eq=False, gc=False):
    """Consecutive changes of one table version by one operation, in commit order.

    A source may keep the changes as its own bytes and decode them at the first access. Then `changes` and
    `len` raise SourceError if they can't be decoded. Any thread may call.
    """

    commit_ts: Ts
    start_ts: Ts
    table: Table
    op: Op
    decoded: list[RowChange] | None
    """None until they are decoded."""

    def changes(self) -> list[RowChange]:
        """Return the changes, decoded once."""
        assert self.decoded is not None
        return self.decoded

    def __len__(self) -> int:
        return len(self.changes())


def runs_of(changes: Iterable[RowChange]) -> list[Run]:
    """Group changes that are decoded already, in their order."""
    runs: list[Run] = []
    run: Run | None = None
    for change in changes:
        if run is not None and change.table is run.table and change.op == run.op:
            run.decoded.append(change)  # type: ignore[union-attr]
        else:
            run = Run(change.commit_ts, change.start_ts, change.table, change.op, [change])
            runs.append(run)
    return runs


class Rows(Sequence[RowChange]):
    """The changes of several runs, one after the other.

    The first access decodes all of them, so that none is seen if a later one can't be decoded; it raises
    SourceError then. `len` may raise it, too.
    """

    __slots__ = ("_count", "_flat", "runs")

    def __init__(self, runs: list[Run]) -> None:
        self.runs: Final = runs
        self._count = -1
        self._flat: list[RowChange] | None = None

    def decode(self) -> None:
        """Decode everything that isn't decoded yet."""
        for run in self.runs:
            run.changes()

    def __len__(self) -> int:
        if self._count < 0:
            self._count = sum([len(run) for run in self.runs])
        return self._count

    def __iter__(self) -> Iterator[RowChange]:
        return chain.from_iterable([run.changes() for run in self.runs])

    @overload
    def __getitem__(self, index: int) -> RowChange: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowChange]: ...
    def __getitem__(self, index: int | slice) -> RowChange | list[RowChange]:
        if self._flat is None:
            self._flat = list(self)
        return self._flat[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Rows, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class TableProgress(Struct, frozen=True):
    """Progress of one table's snapshot: complete, or up to and including the key `last`."""

    last: tuple[int, ...] | None = None
    """None: the whole table; (): the table exists, without rows. Only integer keys are resumed inside a
    table."""


SnapshotProgress: TypeAlias = dict[str, TableProgress]
"""Tables by full name whose snapshot has begun; one not in it has no rows in the target yet."""


class Chunk(Struct, frozen=True):
    """Marks a transaction as snapshot rows: `table` is loaded up to `loaded` once it is applied.

    With `table` empty the snapshot is complete. In a transaction in parts, each part names the table, and the
    last one has its progress.
    """

    table: str
    loaded: TableProgress = TableProgress()


class TablePosition(Struct, frozen=True):
    """Position up to which one table's changes are applied."""

    ts: Ts
    position: str
    """The source's own position after the transaction of that ts."""


class SparkQuery(Struct, frozen=True, tag="spark query"):
    """Spark writes the target, in a query that began at the checkpoint."""

    partitions: int
    """Number of partitions of the query; it can't change, as progress is stored by partition."""


class SparkBatch(Struct, frozen=True, tag="spark batch"):
    """A Spark task wrote this checkpoint, which is for one partition."""

    query: str
    batch: int


Owner: TypeAlias = SparkQuery | SparkBatch


class Checkpoint(Struct, frozen=True):
    """State of a target: it contains every transaction up to `ts`, for the tables that `loading` lists."""

    ts: Ts
    position: str
    """The source's own position after that transaction, for instance "mysql-bin.000003:4711"."""
    loading: SnapshotProgress | None = None
    """None once the snapshot is complete, or if there is none."""
    source: str = ""
    """Identity of the source, so that a checkpoint isn't used with another server."""
    owner: Owner | None = None
    """Engine that writes the target; None: the local one."""
    tables: dict[str, TablePosition] = {}
    """Tables that aren't at `ts`, by full name: they lag behind it or are ahead of it."""

    @property
    def resume(self) -> TablePosition:
        """The lowest position from which changes are still needed: its own, or that of a lagging table."""
        own = TablePosition(self.ts, self.position)
        return min([own, *self.tables.values()], key=lambda at: at.ts) if self.tables else own

    def covers(self, table: str, ts: Ts) -> bool:
        """Return True if the target has the changes of `table` at `ts`."""
        own = self.tables.get(table)
        return ts <= (self.ts if own is None else own.ts)

    def includes(self, other: Checkpoint) -> bool:
        """Return True if the target has everything that it has at `other`, a checkpoint of the same
        source."""
        if not (self.tables or other.tables):
            return self.ts >= other.ts
        ends = [(name, at.ts) for name, at in other.tables.items()]
        ends += [(name, other.ts) for name in self.tables if name not in other.tables]
        return self.ts >= other.ts and all(self.covers(name, ts) for name, ts in ends)


class Transaction(Struct, frozen=True, gc=False):
    """Row changes of a source transaction in order; complete, unless it is larger than a batch.

    A transaction larger than a batch comes as several consecutive ones with the same ts; only the last has
    `last` set and a position. One without rows advances the checkpoint.
    """

    commit_ts: Ts
    start_ts: Ts
    source: str
    rows: Sequence[RowChange]
    position: str = ""
    last: bool = True
    chunk: Chunk | None = None
    """Set if the rows are part of a snapshot instead of a transaction of the source."""

    @property
    def runs(self) -> list[Run]:
        """The rows as runs, which need not be decoded."""
        return self.rows.runs if isinstance(self.rows, Rows) else runs_of(self.rows)


class CreateTable(Struct, frozen=True):
    """Create the table as it is in the source, before it is loaded."""

    table: Table


class AddColumn(Struct, frozen=True):
    column: Column
    after: str | None = None
    """The column it follows; "" puts it first, None last."""
    unless_exists: bool = False
    """ADD COLUMN IF NOT EXISTS: nothing happens if the table had such a column before the statement."""


class DropColumn(Struct, frozen=True):
    name: str
    if_exists: bool = False
    """DROP COLUMN IF EXISTS: nothing happens if the table had no such column before the statement."""


Action: TypeAlias = CreateTable | AddColumn | DropColumn


class Ddl(Struct, frozen=True):
    """A schema change of one table, in commit order between transactions."""

    commit_ts: Ts
    start_ts: Ts
    source: str
    schema: str
    table: str
    query: str
    """The statement as the source ran it; empty for a table created for its snapshot."""
    actions: tuple[Action, ...]
    """Effects of the statement; empty if `refusal` says why it can't be followed."""
    position: str = ""
    refusal: str = ""
    """A sentence for users that quotes the statement; empty if it can be followed."""
    epoch_seconds: float = 0.0
    """Time of the source's clock when the statement ran, for defaults such as CURRENT_TIMESTAMP."""
    last: bool = True
    utc_offset_seconds: int = 0
    """UTC offset of the session: defaults of date and datetime columns use its local time, and a timestamp's
    default is written in it."""
    if_exists: bool = False
    """True if the refusal applies only to targets in which the table exists."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"


Item: TypeAlias = Transaction | Ddl


class Batch(Struct, frozen=True):
    """To a sink: items in commit order, and the checkpoint that is valid once all are applied.

    `checkpoint` is None while a transaction larger than a batch is still open.
    """

    items: list[Item]
    checkpoint: Checkpoint | None


def row_count(items: Iterable[Item]) -> int:
    """Return the number of row changes in `items`."""
    return sum(len(item.rows) for item in items if isinstance(item, Transaction))


# --- the status of a feed --------------------------------------------------------------------------

WaitKind: TypeAlias = Literal[
    "answer", "retry", "room", "memory", "table", "source", "acknowledgement",
    "barrier", "held",
    "region", "scan", "lookup", "region retry", "lock", "scan turn", "division",
]  # fmt: skip


class ActorName(str):
    """The name of an actor that serves one table of the source. A Wait holds it as a plain str."""

    __slots__ = ("table_id",)

    table_id: int

    def __new__(cls, name: str, table_id: int) -> ActorName:
        made = super().__new__(cls, name)
        made.table_id = table_id
        return made


class Wait(Struct, frozen=True, omit_defaults=True):
    """A part that waits. The fields set after `seconds` depend on `kind`."""

    stage: str
    """The part that waits: "source", "sink copy", an actor's name."""
    kind: WaitKind
    """Reason for waiting: an `answer` of a server; the next attempt of a `retry`; `room` in a mailbox;
    `memory` in the sorter; the resolved ts of a `table` or of a `source`; an `acknowledgement` of the
    program; items before a `barrier`; items `held` by a stage; and for TiKV: a `region` that lags; a `scan`
    of one; the `lookup` of one; a `region retry`; a `lock`; a `scan turn`; a `division` into regions."""
    seconds: float
    """Time waited so far."""
    table: str = ""
    """Full name of the table concerned; empty for none, or for all."""
    table_id: int | None = None
    """The source's id of that table, if its name isn't known."""
    on: str = ""
    """The mailbox, server or keys waited for."""
    reason: str = ""
    """Cause of the wait: an error, or the work in progress."""
    pause_seconds: float = 0.0
    """Time until the next attempt."""
    count: int = 0
    """Number of such waits, of queued messages, or of failures."""
    limit: int = 0
    """Maximum of `count`."""
    region: int = 0
    store: int = 0
    address: str = ""
    """Address of the store."""
    ts: int = 0
    """A resolved ts, or the start ts of the transaction that holds a lock."""
    row: str = ""
    """Handle of the locked row, or the locked key."""
    ttl_seconds: float = 0.0
    """Time to live of a lock."""


def room_wait(who: str, mailbox: str, seconds: float, *, count: int = 0, limit: int = 0) -> Wait:
    """Return the Wait of an actor for room in a mailbox; `count` of `limit` messages are queued in it."""
    named = who if isinstance(who, ActorName) else mailbox
    table_id = named.table_id if isinstance(named, ActorName) else None
    return Wait(str(who), "room", seconds, on=str(mailbox), table_id=table_id, count=count, limit=limit)
