from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Final

from ...events import Block, Item, KvChange, Op, Row, RowChange, Rows, Run, Table, Transaction, Ts
from ..blocks import BlockBuilder as Builder
from ..mysql.row_code import RowsReader
from ..mysql.run import EventBlock, EventRun
from ..prewrites import PrewriteTable as Prewrites
from ..tidb.native_rows import NativeTable
from ..tidb.run import KvRun
from .arrow import Buffers
from .column import Description
from .json_texts import JsonColumn
from .row_texts import Part

NULLABLE: Final[int]
HIDDEN: Final[int]
MAX_DIGITS: Final[int]

def __getattr__(name: str) -> int: ...
def change_data(data: bytes, /) -> list[tuple[int, int, int | RegionRows]] | None: ...
def binlog_transactions(
    builder: Builder,
    payloads: list[bytes],
    first: int,
    layouts: dict[bytes, int],
    has_crc: bool,
    last_ts: Ts,
    offset: int,
    file: str,
    origin: bytes | None,
    number: int,
    before: str,
    after: str,
    /,
) -> tuple[int, int, int, Ts, int, int, int, bool]: ...
def image_columns(
    layout: Layout, events: tuple[bytes, ...], starts: tuple[bytes, ...], /
) -> list[Buffers]: ...
def event_changes(
    readers: dict[int, tuple[bytes, RowsReader]],
    events: list[bytes],
    commit_ts: list[int],
    start_ts: list[int],
    /,
) -> list[list[RowChange] | None]: ...
def event_transactions(
    block: Block,
    first: int,
    blocks: dict[int, EventBlock],
    items: list[Item],
    operations: dict[int, Op],
    source: str,
    run: type[EventRun],
    rows: type[Rows],
    transaction: type[Transaction],
    /,
) -> int: ...
def event_counts(readers: dict[int, tuple[bytes, RowsReader]], events: list[bytes], /) -> list[int]: ...
def image_starts(layout: Layout, event: bytes, start: int, end: int, /) -> bytes: ...
def result_columns(layout: Layout, packets: bytes, /) -> list[Buffers]: ...
def count_rows(packets: bytes, /) -> int: ...
def row_starts(packets: bytes, /) -> bytes: ...
def whole_payloads(data: bytes, /) -> tuple[list[bytes], int]: ...
def whole_rows(data: bytes, start: int, /) -> tuple[int, int, int]: ...
def json_texts(
    columns: tuple[JsonColumn, ...],
    rows: int,
    absent: Any | None,
    first_absent: int,
    powers: bytes,
    most_bytes: int,
    /,
) -> Buffers: ...
def row_texts(count: int, parts: tuple[Part, ...], powers: bytes, /) -> list[bytes]: ...
def time_texts(
    output: int, width: int, scale: int, rows: int, validity: Any | None, values: Any, /
) -> tuple[Any, Any]: ...
def tidb_rows(
    layout: TidbLayout, pairs: Sequence[tuple[bytes, bytes]], python: Callable[[bytes, bytes], Row], /
) -> list[Row]: ...
def tidb_changes(
    block: Block, tables: Mapping[bytes, NativeTable | None], change: type[RowChange], /
) -> list[RowChange | None]: ...
def tidb_transactions(
    block: Block, tables: Mapping[bytes, NativeTable | None], change: type[RowChange], /
) -> tuple[list[Ts], list[Ts], list[Any]]: ...
def tidb_runs(
    block: Block, tables: Mapping[bytes, NativeTable | None], run: type[KvRun], rows: type[Rows], /
) -> tuple[list[Ts], list[Ts], list[Any]]: ...
def tidb_columns(
    layout: TidbLayout, blocks: tuple[Block, ...], after: bool, /
) -> tuple[bytes, list[Buffers]]: ...
def pack_changes(blocks: tuple[Block, ...], /) -> tuple[bytes, bytes]: ...
def tidb_packed_columns(
    layout: TidbLayout, packed: Any, ends: Any, first: int, has: bytes, after: bool, /
) -> list[Buffers]: ...
def use_change(change: type[KvChange], /) -> None: ...
def use_items(
    transaction: type[Transaction], rows: type[Rows], run: type[Run], change: type[RowChange], /
) -> None: ...
def whole_items(items: Iterable[object], ts: Ts, room: int, /) -> tuple[int, int, int, Ts]: ...
def counted_items(transactions: Iterable[object], /) -> list[tuple[Table, Op, int]]: ...
def merge_blocks(blocks: Sequence[Block], keyspaces: Sequence[int] = ..., /) -> Block: ...
def block_from_bytes(data: bytes, /) -> Block: ...
def BlockBuilder() -> Builder: ...  # noqa: N802
def PrewriteTable() -> Prewrites: ...  # noqa: N802

class RegionRows(Sequence[tuple[int, int, int, int, bytes, bytes, bytes, int]], metaclass=ABCMeta): ...

class Layout:
    def __init__(self, columns: tuple[Description, ...], /) -> None: ...

class ResultReader:
    def __init__(
        self, layout: Layout, change: type[RowChange], table: Table, of_long_rows: RowsReader, /
    ) -> None: ...
    def __call__(
        self, data: bytes, start: int, end: int, commit_ts: int, start_ts: int, /
    ) -> list[RowChange]: ...

class ImageReader:
    def __init__(
        self,
        layout: Layout,
        change: type[RowChange],
        table: Table,
        op: Op,
        before: tuple[int, ...],
        after: tuple[int, ...],
        /,
    ) -> None: ...
    def __call__(
        self, data: bytes, start: int, end: int, commit_ts: int, start_ts: int, /
    ) -> list[RowChange]: ...

class TidbLayout:
    def __init__(
        self,
        layout: Layout,
        origins: tuple[tuple[int, int, bytes | EllipsisType | None], ...],
        parts: tuple[tuple[int, bool], ...],
        verify_checksums: bool,
        /,
    ) -> None: ...
