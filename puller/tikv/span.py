"""Half-open ranges of encoded keys, and those of a table or the DDL history.

Encoded keys are memcomparable, as in PD and TiKV's region bounds.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...codec.tidb.key import encode_bytes, record_span

UPPER_BOUND: Final = b"\xff" * 5
"""+inf inside the puller: above every encoded key of tables ('t') and metadata ('m')."""

JOB_TABLE_ID: Final = (1 << 48) - 2
"""mysql.tidb_ddl_job, which contains the jobs since concurrent DDL (TiDB 6.2)."""

_JOB_LISTS: Final = (b"DDLJobList", b"DDLJobAddIdxList")


class Span(Struct, frozen=True, gc=False, order=True):
    """Encoded keys in [start, end); "" is -inf, UPPER_BOUND +inf."""

    start: bytes
    end: bytes

    def contains(self, encoded_key: bytes) -> bool:
        return self.start <= encoded_key < self.end

    def covers(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"[{self.start.hex()}, {self.end.hex()})"


def table_span(table_id: int) -> Span:
    """Return the span of a table's rows, without its indexes."""
    start, end = record_span(table_id)
    return Span(encode_bytes(start), encode_bytes(end))


def raw_span(start: bytes, end: bytes) -> Span:
    """Return the span of raw keys; an empty `start` is -inf, an empty `end` +inf."""
    return Span(encode_bytes(start) if start else b"", encode_bytes(end) if end else UPPER_BOUND)


def ddl_spans() -> list[Span]:
    """Return the spans that contain DDL jobs: the two lists in the meta keys and the job table (TiCDC puller
    document)."""
    return [*map(_meta_list_span, _JOB_LISTS), table_span(JOB_TABLE_ID)]


def intersect(a: Span, b: Span) -> Span | None:
    """Return the intersection of two spans; None if it is empty."""
    start, end = max(a.start, b.start), min(a.end, b.end)
    return Span(start, end) if start < end else None


def _meta_list_span(name: bytes) -> Span:
    """Return the span of a list's items in the meta keys: m, the encoded name, 'l' as a uint64, an index."""
    prefix = b"m" + encode_bytes(name) + bytes(7)
    return Span(encode_bytes(prefix + b"l"), encode_bytes(prefix + b"m"))
