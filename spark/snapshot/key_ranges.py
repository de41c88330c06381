"""Ranges of the raw keys that conditions on a clustered key of TiDB accept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, Final, TypeAlias

from ...codec.tidb.columns import Columns
from ...codec.tidb.datum import Flag, encode_datum
from ...codec.tidb.field import Field
from ...codec.tidb.key import encode_int, record_prefix, record_span
from ...codec.tidb.sort_key import sort_key
from ...events import INTEGERS
from ...snapshot.tikv.ranges import RawRange
from .row_filter import IntegerRange, RowFilter

_Interval: TypeAlias = tuple[int, int]
"""First and last integer."""

_GAP: Final = 64
"""Maximum distance of two integers that are read by one request: the rows between cost less than another."""
_MOST: Final = 10_000
"""Maximum number of ranges of a clustered key."""
_SIGN: Final = 1 << 63
_SIGNED: Final = IntegerRange(-_SIGN - 1, _SIGN - 1)
_UNSIGNED: Final = IntegerRange(-1, 2 * _SIGN - 1)
_TEXTS: Final = frozenset(("char", "varchar"))
_AFTER: Final = b"\xff"
"""Sorts after everything that may follow a complete datum or handle in a key."""


def key_ranges(columns: Columns, physical_ids: Iterable[int], filters: Sequence[RowFilter]) -> list[RawRange]:
    """Return the ranges in key order that contain all rows that the conditions accept.

    The rows are those of a table with these ids in its keys. Conditions on other columns are ignored.
    """
    handles = _handles(columns, filters)
    ranges: list[RawRange] = []
    for physical_id in sorted(physical_ids):
        if handles is None:
            ranges.append(record_span(physical_id))
        else:
            prefix = record_prefix(physical_id)
            ranges += [(prefix + start, prefix + end) for start, end in handles]
    return ranges


def _handles(columns: Columns, filters: Sequence[RowFilter]) -> list[RawRange] | None:
    """Return the ranges of handles in order; None without a condition on the key's first column."""
    fields = {field.column.id: field for field in columns.stored}
    if columns.handle is not None:
        field = fields[columns.handle]
        intervals = _intervals(field, filters)
        return None if intervals is None else _integer_handles(_is_unsigned(field), _merged(intervals))
    ranges: list[RawRange] | None = None
    prefixes = [b""]
    for id_ in columns.common_handle:
        parts = None if id_ in columns.prefixes else _datums(fields[id_], filters)
        if parts is None or len(prefixes) * len(parts) > _MOST:
            break
        pairs = list(product(prefixes, parts))
        ranges = [(prefix + first, prefix + last + _AFTER) for prefix, (first, last) in pairs]
        if any(first != last for first, last in parts):
            break
        prefixes = [prefix + first for prefix, (first, _) in pairs]
    return ranges


def _integer_handles(is_unsigned: bool, intervals: Iterable[_Interval]) -> list[RawRange]:
    """Return the ranges of integer handles: numbers from 2^63 are stored as negative ones."""
    pieces = list(intervals)
    if is_unsigned:
        high = [(max(first, _SIGN) - 2 * _SIGN, last - 2 * _SIGN) for first, last in pieces if last >= _SIGN]
        pieces = [*high, *((first, min(last, _SIGN - 1)) for first, last in pieces if first < _SIGN)]
    return [(encode_int(first), encode_int(last) + _AFTER) for first, last in pieces]


def _datums(field: Field, filters: Sequence[RowFilter]) -> list[RawRange] | None:
    """Return the first and last datums in order that are accepted; None for all."""
    if field.kind in INTEGERS:
        flag = field.storage.key_flag
        intervals = _intervals(field, filters)
        if intervals is None:
            return None
        return [(encode_datum(flag, first), encode_datum(flag, last)) for first, last in intervals]
    if field.kind in _TEXTS:
        return _texts(field, filters)
    return None


def _texts(field: Field, filters: Sequence[RowFilter]) -> list[RawRange] | None:
    values = _values(field, filters)
    if values is None:
        return None
    try:
        # A cluster without TiDB's new collations has the texts themselves in its keys.
        keys = {key for text in values for key in (text.encode(), sort_key(field.column, text.encode()))}
    except ValueError:
        return None
    return [(datum, datum) for datum in sorted(encode_datum(Flag.BYTES, key) for key in keys)]


def _intervals(field: Field, filters: Sequence[RowFilter]) -> list[_Interval] | None:
    """Return the integers in order that are accepted; None for all."""
    own = [one for one in filters if one.column == field.column.name and one.values]
    if not own:
        return None
    within = reduce(IntegerRange.narrowed, own, _UNSIGNED if _is_unsigned(field) else _SIGNED)
    values = _values(field, filters)
    if values is not None:
        return [(value, value) for value in sorted(values) if within.has(value)]
    assert within.after is not None
    assert within.up_to is not None
    return [] if within.is_empty else [(within.after + 1, within.up_to)]


def _values(field: Field, filters: Sequence[RowFilter]) -> set[Any] | None:
    """Return the values that = and IN accept; None without such a condition."""
    sets = [
        set(one.values) for one in filters if one.column == field.column.name and one.operator in ("=", "IN")
    ]
    return set.intersection(*sets) if sets else None


def _merged(intervals: Iterable[_Interval]) -> Iterator[_Interval]:
    """Join intervals that are close to each other."""
    before: _Interval | None = None
    for first, last in intervals:
        if before is not None and first - before[1] <= _GAP:
            before = before[0], last
            continue
        if before is not None:
            yield before
        before = first, last
    if before is not None:
        yield before


def _is_unsigned(field: Field) -> bool:
    return field.storage.key_flag == Flag.UINT
