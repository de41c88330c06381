"""tidemill: ordered, whole transactions of a live database, inside your process."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chain import Barrier as Barrier
    from .chain import Keep as Keep
    from .chain import Lag as Lag
    from .chain import Stage as Stage
    from .chain import StageContext as StageContext
    from .compare import Diff as Diff
    from .compare import Difference as Difference
    from .compare import TableResult as TableResult
    from .compare import open_diff
    from .embedded import ArrowBatch as ArrowBatch
    from .embedded import FollowHandle as FollowHandle
    from .embedded import MergeHandle as MergeHandle
    from .embedded import OpenFeed as OpenFeed
    from .embedded import follow as follow
    from .embedded import merge as merge
    from .embedded import open_feed
    from .engine.locks import locks as locks
    from .engine.locks import unlock as unlock
    from .engine.status import FeedStatus as FeedStatus
    from .engine.status import SinkStatus as SinkStatus
    from .engine.status import SnapshotStatus as SnapshotStatus
    from .engine.tables import TableStatus as TableStatus
    from .errors import CheckpointError as CheckpointError
    from .errors import ConfigError as ConfigError
    from .errors import Fatal as Fatal
    from .errors import InvariantViolated as InvariantViolated
    from .errors import Retryable as Retryable
    from .errors import SinkError as SinkError
    from .errors import SourceError as SourceError
    from .errors import StoreError as StoreError
    from .errors import TidemillError as TidemillError
    from .errors import UsageError as UsageError
    from .events import AddColumn as AddColumn
    from .events import Batch as Batch
    from .events import ChangeColumn as ChangeColumn
    from .events import ChangeDetails as ChangeDetails
    from .events import ChangeKey as ChangeKey
    from .events import Checkpoint as Checkpoint
    from .events import Column as Column
    from .events import CreateTable as CreateTable
    from .events import Ddl as Ddl
    from .events import DropColumn as DropColumn
    from .events import DropTable as DropTable
    from .events import Item as Item
    from .events import RenameTables as RenameTables
    from .events import RowChange as RowChange
    from .events import Table as Table
    from .events import TablePosition as TablePosition
    from .events import Transaction as Transaction
    from .events import TruncateTable as TruncateTable
    from .events import Wait as Wait
    from .events import timestamp as timestamp
    from .puller.mysql.options import MysqlOptions as MysqlOptions
    from .puller.tikv.options import TikvOptions as TikvOptions
    from .sharding import FeedWait as FeedWait
    from .sharding import LockStatus as LockStatus
    from .sink import Sink as Sink
    from .sink import SinkStatistics as SinkStatistics
    from .sink import SinkTraits as SinkTraits
    from .sink.dead_letters import DeadLetter as DeadLetter
    from .sink.dead_letters import DeadLetters as DeadLetters
    from .sink.dead_letters import Retried as Retried
    from .sink.event_sink import EventSink as EventSink
    from .sink.handlers import EmptyTransactions as EmptyTransactions
    from .sink.handlers import Handler as Handler
    from .sink.registry import open_dead_letters as open_dead_letters
    from .sorter import SorterOptions as SorterOptions
    from .timeline import GroupOptions as GroupOptions

    diff = open_diff
    open = open_feed  # noqa: A001

__version__ = "0.1.0"

# Lazy (PEP 562): importing one stage must not import all of them, and an eager root makes test
# runners that start inside the package import every module twice.
_HOMES = {
    "Barrier": ".chain",
    "Keep": ".chain",
    "Lag": ".chain",
    "Stage": ".chain",
    "StageContext": ".chain",
    "Diff": ".compare",
    "Difference": ".compare",
    "TableResult": ".compare",
    "diff": ".compare",
    "ArrowBatch": ".embedded",
    "FollowHandle": ".embedded",
    "MergeHandle": ".embedded",
    "OpenFeed": ".embedded",
    "follow": ".embedded",
    "merge": ".embedded",
    "open": ".embedded",
    "locks": ".engine.locks",
    "unlock": ".engine.locks",
    "FeedStatus": ".engine.status",
    "SinkStatus": ".engine.status",
    "SnapshotStatus": ".engine.status",
    "TableStatus": ".engine.tables",
    "CheckpointError": ".errors",
    "ConfigError": ".errors",
    "Fatal": ".errors",
    "InvariantViolated": ".errors",
    "Retryable": ".errors",
    "SinkError": ".errors",
    "SourceError": ".errors",
    "StoreError": ".errors",
    "TidemillError": ".errors",
    "UsageError": ".errors",
    "AddColumn": ".events",
    "Batch": ".events",
    "ChangeColumn": ".events",
    "ChangeDetails": ".events",
    "ChangeKey": ".events",
    "Checkpoint": ".events",
    "Column": ".events",
    "CreateTable": ".events",
    "Ddl": ".events",
    "DropColumn": ".events",
    "DropTable": ".events",
    "Item": ".events",
    "RenameTables": ".events",
    "RowChange": ".events",
    "Table": ".events",
    "TablePosition": ".events",
    "Transaction": ".events",
    "TruncateTable": ".events",
    "Wait": ".events",
    "timestamp": ".events",
    "MysqlOptions": ".puller.mysql.options",
    "TikvOptions": ".puller.tikv.options",
    "FeedWait": ".sharding",
    "LockStatus": ".sharding",
    "Sink": ".sink",
    "SinkStatistics": ".sink",
    "SinkTraits": ".sink",
    "DeadLetter": ".sink.dead_letters",
    "DeadLetters": ".sink.dead_letters",
    "Retried": ".sink.dead_letters",
    "open_dead_letters": ".sink.registry",
    "EventSink": ".sink.event_sink",
    "EmptyTransactions": ".sink.handlers",
    "Handler": ".sink.handlers",
    "SorterOptions": ".sorter",
    "GroupOptions": ".timeline",
}

_INSIDE = {"diff": "open_diff", "open": "open_feed"}
"""Names that are other ones where they are defined."""

__all__ = [*_HOMES, "__version__"]


if not TYPE_CHECKING:  # with it, a type checker takes any name for one of this module's

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name], __name__), _INSIDE.get(name, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
