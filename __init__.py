"""tidemill: ordered, whole transactions of a live database, inside your process."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chain import Barrier as Barrier
    from .chain import Lag as Lag
    from .chain import Stage as Stage
    from .chain import StageContext as StageContext
    from .embedded import FollowHandle as FollowHandle
    from .embedded import OpenFeed as OpenFeed
    from .embedded import follow as follow
    from .embedded import open_feed as open  # noqa: A004, F401
    from .engine.status import FeedStatus as FeedStatus
    from .engine.status import SinkStatus as SinkStatus
    from .engine.status import SnapshotStatus as SnapshotStatus
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
    from .sink import Sink as Sink
    from .sorter import SorterOptions as SorterOptions

__version__ = "0.1.0"

# Lazy (PEP 562): importing one stage must not import all of them, and an eager root makes test
# runners that start inside the package import every module twice.
_HOMES = {
    "Barrier": ".chain",
    "Lag": ".chain",
    "Stage": ".chain",
    "StageContext": ".chain",
    "FollowHandle": ".embedded",
    "OpenFeed": ".embedded",
    "follow": ".embedded",
    "open": ".embedded",
    "FeedStatus": ".engine.status",
    "SinkStatus": ".engine.status",
    "SnapshotStatus": ".engine.status",
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
    "Sink": ".sink",
    "SorterOptions": ".sorter",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), "open_feed" if name == "open" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
