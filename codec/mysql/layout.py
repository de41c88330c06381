"""Numbers of the layouts of rows, so that a raw change refers to its layout by an int."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Final

from msgspec.structs import replace

from ...errors import SourceError
from ...events import Op, RowChange, Run, Table, Ts, origin_name
from .field import TableMap
from .known import UNTOLD_KINDS, is_shown
from .known_table import KnownTable
from .result_rows import ResultRowsDecoder
from .rows import RowsDecoder
from .run import EventBlock, EventRun, ResultRun, unreadable
from .table_map import has_names, may_be_sequence, names_of, parse_table_map
from .versioned import logged, present


class TableLayout:
    """The layout of rows of one version of a table. Decoders are created on first use, then kept."""

    is_versioned = False
    """True if rows events are to be decoded by `read`: not every row of them counts."""

    def __init__(
        self, source: bytes | Table, known: KnownTable | None = None, *, source_name: str = ""
    ) -> None:
        """`source_name` is that of its table."""
        self._source: Final = source
        self._known: Final = known
        self._source_name: Final = source_name
        self._last_known: KnownTable | None = None
        self._with_schema: TableLayout = self

    @cached_property
    def names(self) -> tuple[str, str]:
        """Schema and table. Raises SourceError if the Table_map can't be read."""
        if isinstance(self._source, Table):
            return self._source.schema, self._source.name
        try:
            return names_of(self._source)
        except (IndexError, UnicodeDecodeError):
            raise SourceError("a Table_map event of the binlog can't be read") from None

    @cached_property
    def has_names(self) -> bool:
        """True if the columns' names are known without a catalog."""
        return not isinstance(self._source, bytes) or has_names(self._source)

    @cached_property
    def may_be_sequence(self) -> bool:
        """True for rows events of a table that has the columns of a sequence."""
        return isinstance(self._source, bytes) and may_be_sequence(self._source)

    @property
    def described(self) -> tuple[str, bytes] | None:
        """The table's name, after that of its source, and the Table_map, empty for rows of a snapshot; None
        if the Table_map can't be read."""
        try:
            name = origin_name(self._source_name, ".".join(self.names))
        except SourceError:
            return None
        return name, self._source if isinstance(self._source, bytes) else b""

    def with_schema(self, known: KnownTable) -> TableLayout:
        """Return the layout of a table whose schema is known: this one if the Table_map tells all of it."""
        if known is not self._last_known:  # asked for each rows event, mostly with the same table
            self._last_known = known
            table = known.table
            if table.row_end is not None:
                self._with_schema = VersionedLayout(self._source, known, source_name=self._source_name)
                return self._with_schema
            is_told = self.has_names and known.whole is None
            is_told &= not any(c.generated or c.kind in UNTOLD_KINDS or is_shown(c) for c in table.columns)
            self._with_schema = (
                self if is_told else TableLayout(self._source, known, source_name=self._source_name)
            )
        return self._with_schema

    @cached_property
    def table(self) -> Table:
        """The table. Raises SourceError if the Table_map can't be read or contains something unsupported."""
        return self._named(self._source) if isinstance(self._source, Table) else self._table_map.table

    def _named(self, table: Table) -> Table:
        return replace(table, source_name=self._source_name) if self._source_name else table

    def read(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """The row changes of one rows event (ROWS), in order; SourceError that tells the place, too."""
        try:
            return self._rows.decode(event, commit_ts, start_ts)
        except SourceError as error:
            raise unreadable(error, event, commit_ts) from None

    def block(self) -> EventBlock:
        """Return a block for rows events (ROWS) that are decoded together."""
        return EventBlock(self._rows, self.table)

    def images_run(self, images: bytes, op: Op, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """The changes of row images, an update's two after each other, as an event has them."""
        return self.block().add(self._rows.event(images, op), commit_ts, start_ts)

    def result_run(self, packets: bytes, commit_ts: Ts, start_ts: Ts) -> Run:
        """The inserts of a stretch of snapshot rows (RESULT_ROWS), not decoded yet."""
        return ResultRun(commit_ts, start_ts, self.table, "insert", None, self._result_rows, packets)

    def decode_rows(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return the row changes of one rows event (ROWS), in order; SourceError if it can't be read."""
        return self._rows.decode(event, commit_ts, start_ts)

    @cached_property
    def _table_map(self) -> TableMap:
        if isinstance(self._source, Table):
            raise TypeError(f"{self._source.full_name}: a layout of snapshot rows has no Table_map")
        parsed = parse_table_map(self._source, self._known)
        return replace(parsed, table=self._named(parsed.table))

    @cached_property
    def _rows(self) -> RowsDecoder:
        assert isinstance(self._source, bytes)
        return RowsDecoder(self._table_map, self._source, needs_schema=self._known is not None)

    @cached_property
    def _result_rows(self) -> ResultRowsDecoder:
        return ResultRowsDecoder(self.table)


class VersionedLayout(TableLayout):
    """The layout of logged rows of a system-versioned table, of which the present ones count."""

    is_versioned = True

    def __init__(self, source: bytes | Table, known: KnownTable, *, source_name: str = "") -> None:
        super().__init__(source, logged(known), source_name=source_name)
        self._present: Final = self._named(known.table)

    def read(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        return list(present(super().read(event, commit_ts, start_ts), self._present))


class Layouts:
    """All layouts of the process, numbered from 1. Thread-safe; nothing is ever removed.

    There is one layout per version of a table's schema, so there are few: tables times DDLs.
    """

    def __init__(self, source_name: str = "") -> None:
        """`source_name` is that of all their tables."""
        self._source_name = source_name
        self._lock = Lock()
        self._numbers: dict[bytes | Table, int] = {}
        self._layouts: list[TableLayout] = []
        self._record: Callable[[int, TableLayout], object] | None = None

    def record(self, note: Callable[[int, TableLayout], object]) -> None:
        """Call `note` with each layout and its number: with those that exist, and with later ones."""
        with self._lock:
            self._record = note
            for number, layout in enumerate(self._layouts, 1):
                note(number, layout)

    def number_of(self, table_map: bytes) -> int:
        """Return the number of a Table_map event's payload (its body after table id and flags)."""
        return self._numbers.get(table_map) or self._add(table_map)

    def add_table(self, table: Table) -> int:
        """Return the number of the layout of `table`'s snapshot rows."""
        return self._numbers.get(table) or self._add(table)

    def layout(self, number: int) -> TableLayout:
        return self._layouts[number - 1]

    def _add(self, source: bytes | Table) -> int:
        with self._lock:
            if source not in self._numbers:
                layout = TableLayout(source, source_name=self._source_name)
                self._layouts.append(layout)
                self._numbers[source] = len(self._layouts)
                if self._record is not None:
                    self._record(len(self._layouts), layout)
            return self._numbers[source]
