"""Options of SQL databases as targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from ..errors import ConfigError

Copy: TypeAlias = Literal["columns", "definition"]
"""Parts of a table's definition that are copied: columns and the primary key, or also indexes and the
like."""
MAX_WORKERS: Final = 64
DEFAULT_WORKERS: Final = 4
Order: TypeAlias = Literal["strict", "by key"]
"""Order in which transactions become visible: that of the source, or that of each key."""

Verify: TypeAlias = Literal["key", "before"]
"""Values of a row that an update or delete compares with those before it: its key, or all."""


OnError: TypeAlias = Literal["stop", "dead letters"]
"""Treatment of a change that the target rejects."""
MAX_DEAD_LETTERS: Final = 1_000
MARK_SCHEMA: Final = "retl"
MARK_TABLE: Final = "_drainer_repl_mark"
MARKS: Final = f"{MARK_SCHEMA}.{MARK_TABLE}"
"""TiDB-Binlog's table, in which each transaction of a drainer changes a row of its channel."""
MAX_ID_CHARS: Final = 32
"""Maximum length of a source's id in DM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """Options of changes of rows, which every SQL database has. Raises ConfigError that names the accepted
    values."""

    verify: Verify = "key"
    """With "before", a row that differs from the source's row before an update or delete is an error."""
    safe_mode: bool = False
    """Apply changes whatever the rows are in the target: an insert or update replaces the row, and the
    delete of a missing row is no error."""
    merge: bool = False
    """Apply the changes of a row in a batch as one: an insert and its update as an insert, an insert and its
    delete not at all. Triggers of the target fire for what is left. Not in safe mode, and not in tables with
    foreign keys or without a key."""
    on_error: OnError = "stop"
    """With "stop" a change that the target rejects stops the feed; with "dead letters" it is put into a table
    beside the checkpoint, with all later changes of the row, and the others go on."""
    max_dead_letters: Annotated[int, Meta(ge=1)] = MAX_DEAD_LETTERS
    """Maximum number of dead letters of the feed; one more stops it."""
    syncpoint_seconds: Annotated[float, Meta(ge=0)] = 0
    """Interval of syncpoints in the table `tidemill_syncpoint`: points at which the target has every
    transaction up to a commit ts, and nothing else; 0: none. Not in a snapshot, nor while a table lags."""
    syncpoint_keep_seconds: Annotated[int, Meta(ge=1)] = 86_400
    """Age after which syncpoints are deleted, except the last."""

    @property
    def copies_definitions(self) -> bool:
        """True if indexes and the like are copied, too."""
        return False

    @property
    def channel(self) -> int:
        """Number of the loopback channel whose marks are written; 0: none are."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions(RowOptions):
    """Options of a SQLite file."""

    table_name: str = "{schema}.{table}"
    """Template of a table's name in the database, from {schema} and {table} of the source."""

    def __post_init__(self) -> None:
        fields = {field for _, field, _, _ in Formatter().parse(self.table_name)} - {None}
        if "table" not in fields or fields - {"schema", "table"}:
            raise ConfigError(
                f"table_name {self.table_name!r} must have {{table}} in it, and may have {{schema}}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDbOptions(RowOptions):
    """Options of a DuckDB file."""

    schema: str = ""
    """Target schema of all tables; empty: each table's own."""
    dates: Literal["native", "text"] = "native"
    """With "text", DATE, DATETIME and TIMESTAMP become text as the source prints it; otherwise dates that
    DuckDB lacks, such as 0000-00-00, are errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelOptions(RowOptions):
    """Options of targets with several connections."""

    workers: Annotated[int, Meta(ge=1, le=MAX_WORKERS)] | None = None
    """Number of connections that apply transactions in parallel. Default: 4; 1 with `order = "strict"`."""
    order: Order | None = None
    """With "strict" transactions become visible in commit order, by one connection; with "by key" only those
    that change the same row or unique value do. Default: "strict" for one worker, else "by key"."""

    def __post_init__(self) -> None:
        if self.order == "strict" and (self.workers or 1) > 1:
            raise ConfigError(
                f'order = "strict" needs one worker, not {self.workers}: use order = "by key", or workers = 1'
            )

    @property
    def is_serial(self) -> bool:
        """True if other options need one connection."""
        return False

    @property
    def parallel_workers(self) -> int:
        """Number of workers that apply by key; 0 to apply in commit order."""
        is_serial = self.is_serial or self.order == "strict" or (self.order is None and self.workers == 1)
        return 0 if is_serial else self.workers or DEFAULT_WORKERS


@dataclass(frozen=True, slots=True, kw_only=True)
class MySqlOptions(ParallelOptions):
    """Options of a MySQL or MariaDB server."""

    schema: str = ""
    """Target schema of all tables; empty: the URL's schema, or each table's own."""
    collations: dict[str, str] = field(default_factory=dict)
    """Substitutes for collations that the server lacks, such as utf8mb4_0900_ai_ci = "utf8mb4_nopad_bin".
    They must tell apart all values of unique keys."""
    copy: Copy = "columns"
    """With "definition", tables also have the secondary indexes, checks, comments and partitions of the
    source."""
    checkpoint: Literal["tidemill", "dm", "drainer", "drainer file"] = "tidemill"
    """Place of the checkpoint: tidemill's own table, also DM's `dm_meta.<task>_syncer_checkpoint`,
    TiDB-Binlog's `tidb_binlog.checkpoint`, all written in the transaction of the rows, or TiDB-Binlog's file,
    written after them. The last two are for a source without a snapshot whose positions are commit
    timestamps."""
    task: str = ""
    """Name of the task in DM; empty: the feed's name."""
    source_id: str = ""
    """Id in DM of the feed's only source. Several sources have their names as ids."""
    checkpoint_file: Path | None = None
    """Path of the drainer's file."""
    cluster_id: Annotated[int, Meta(ge=0)] = 0
    """Row of the drainer's table: the id of the source's cluster; 0: the only row that there is."""
    loopback_channel: Annotated[int, Meta(ge=0)] = 0
    """Number above 0: each SQL transaction with rows changes this channel's row in `retl._drainer_repl_mark`,
    so that a feed in the other direction leaves it out."""

    def __post_init__(self) -> None:
        if self.loopback_channel and ((self.workers or 1) > 1 or self.order == "by key"):
            raise ConfigError("loopback_channel: transactions change one row: leave out workers and order")
        if (self.task or self.source_id) and self.checkpoint != "dm":
            raise ConfigError('task and source_id are for checkpoint = "dm"')
        if len(self.source_id) > MAX_ID_CHARS:
            raise ConfigError(f"source_id = {self.source_id!r}: at most {MAX_ID_CHARS} characters")
        if self.cluster_id and self.checkpoint != "drainer":
            raise ConfigError('cluster_id is for checkpoint = "drainer"')
        ParallelOptions.__post_init__(self)
        if (self.checkpoint == "drainer file") != (self.checkpoint_file is not None):
            raise ConfigError(
                'checkpoint = "drainer file" and checkpoint_file, the path of that file, go together'
            )
        if self.checkpoint != "tidemill" and self.syncpoint_seconds:
            raise ConfigError('syncpoint_seconds is for checkpoint = "tidemill"')
        if self.checkpoint != "tidemill" and ((self.workers or 1) > 1 or self.order == "by key"):
            raise ConfigError(
                f'checkpoint = "{self.checkpoint}" is moved in commit order: leave out workers and order'
            )

    @property
    def copies_definitions(self) -> bool:
        return self.copy == "definition"

    @property
    def is_serial(self) -> bool:
        return self.loopback_channel > 0

    @property
    def channel(self) -> int:
        return self.loopback_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions(ParallelOptions):
    """Options of a PostgreSQL server."""

    schema: str = ""
    """Target schema of all tables; empty: each table's own."""
    dates: Literal["native", "text"] = "native"
    """With "text", DATE, DATETIME and TIMESTAMP become text as the source prints it; otherwise dates that
    PostgreSQL lacks, such as 0000-00-00, are errors."""
