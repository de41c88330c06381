"""The types that stages exchange.

Raw changes (`KvChange`) contain a source's bytes until they are in commit order; then the mounter decodes
them into rows. Stages pass on lists of them, never single ones.
"""

from .change import DELETE, PUT, Changes, KvChange, Sorted
from .checkpoint import (
    CREATED,
    REST,
    STALE,
    WHOLE,
    Checkpoint,
    Chunk,
    Owner,
    SnapshotProgress,
    SparkBatch,
    SparkQuery,
    TablePosition,
    TableProgress,
    load_again,
    progress_of,
)
from .ddl import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
)
from .item import Batch, Item, Transaction, row_count
from .rows import Op, Row, RowChange, Rows, Run, runs_of
from .table import Column, Kind, Table, not_a_member
from .ts import LOGICAL_BITS, Ts, compose_ts, parse_ts, physical_ms, timestamp
from .wait import ActorName, Wait, WaitKind, room_wait

__all__ = [
    "CREATED",
    "DELETE",
    "LOGICAL_BITS",
    "PUT",
    "REST",
    "STALE",
    "WHOLE",
    "Action",
    "ActorName",
    "AddColumn",
    "Batch",
    "ChangeColumn",
    "ChangeKey",
    "Changes",
    "Checkpoint",
    "Chunk",
    "Column",
    "CreateTable",
    "Ddl",
    "DropColumn",
    "DropTable",
    "Item",
    "Kind",
    "KvChange",
    "Op",
    "Owner",
    "RenameTables",
    "Row",
    "RowChange",
    "Rows",
    "Run",
    "SnapshotProgress",
    "Sorted",
    "SparkBatch",
    "SparkQuery",
    "Table",
    "TableName",
    "TablePosition",
    "TableProgress",
    "Transaction",
    "TruncateTable",
    "Ts",
    "Wait",
    "WaitKind",
    "compose_ts",
    "load_again",
    "not_a_member",
    "parse_ts",
    "physical_ms",
    "progress_of",
    "room_wait",
    "row_count",
    "runs_of",
    "timestamp",
]
