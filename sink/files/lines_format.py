"""Files of lines: NDJSON and text encodings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from ...events import Ddl, Item, Table
from ...failpoint import reach
from .formats import Group, Piece
from .layout import day_of
from .lines import Lines
from .ndjson import NdjsonLines


def _no_header(_: Table) -> bytes:
    return b""


class LinesFormat:
    """Encodes each run of rows. Schema changes are NDJSON in every format."""

    reads_rows = True

    def __init__(self, lines: Lines, suffix: str, header: Callable[[Table], bytes] = _no_header) -> None:
        """`header` returns the first line of a table's files, if they have one."""
        self._lines: Final = lines
        self._suffix: Final = suffix
        self._header: Final = header
        self._statements: Final = NdjsonLines(names_source=True)

    def start(self) -> None:
        self._lines.start()

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        for item in items:
            day = day_of(item.commit_ts)
            if isinstance(item, Ddl):
                yield _piece((None, day, item.source), item, self._statements.of(item))
            else:
                runs = item.runs
                for run in runs:
                    part = replace(item, rows=run.changes(), last=item.last and run is runs[-1])
                    yield _piece((run.table, day, item.source), item, self._lines.of(part))
            reach("sink.mid_batch")

    def suffix(self, group: Group) -> str:
        return ".ndjson" if group[0] is None else self._suffix

    def content(self, group: Group, pieces: Sequence[Piece]) -> bytes:
        header = b"" if group[0] is None else self._header(group[0])
        return header + b"".join([piece.content for piece in pieces])

    def pack(self, content: bytes) -> bytes:
        return content

    def unpack(self, group: Group, packed: bytes) -> bytes:  # noqa: ARG002
        return packed


def _piece(group: Group, item: Item, content: bytes) -> Piece:
    return Piece(group, item.commit_ts, item.commit_ts, content, len(content))
