"""Keys of a history: how many there are, and which have the most changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .....events import Table
from ...parquet_columns import TABLE
from ...store import Store
from ..copies.columns import key_names
from ..copies.log import CopyFile
from ..parquet import open_parquet, read_rows
from .report import HotKey

HOT_KEYS: Final = 5
_MOST_KEYS: Final = 2_000_000
"""Number of keys in memory at which those with the fewest changes are forgotten."""
_TOGETHER: Final = 64
"""Number of files whose keys are counted together."""


class Keys(NamedTuple):
    distinct: int | None = None
    """None if the key isn't known, or if there are too many."""
    changes: int = 0
    """Effects of changes on keys."""
    hot: tuple[HotKey, ...] = ()


def count_keys(store: Store, files: Iterable[CopyFile]) -> Keys:
    """Count the effects of a history's changes by key. Raises as Store does.

    An update that changes the key counts for both. Memory is bounded: with more keys than are kept the counts
    are at most too low.
    """
    names: list[str] | None = None
    waiting: list[pa.Table] = []
    counted: pa.Table | None = None
    changes, is_cut = 0, False
    for number, file in enumerate(files, 1):
        with store.open(file.name) as content, open_parquet(content) as parquet:
            own = _key(parquet.schema_arrow) or names
            if not own or (names is not None and own != names):
                return Keys()  # no key, or another one since
            names = own
            found = _effects(parquet, names)
        changes += len(found)
        waiting.append(found)
        if number % _TOGETHER == 0:
            counted, is_cut = _bounded(_together(counted, waiting, names), is_cut=is_cut)
            waiting.clear()
    if names is None:
        return Keys()
    counted = _together(counted, waiting, names)
    top = counted.sort_by([("changes", "descending"), *[(name, "ascending") for name in names]])
    rows = top.slice(0, HOT_KEYS).to_pylist()
    hot = [HotKey(_text({name: row[name] for name in names}), row["changes"]) for row in rows]
    return Keys(None if is_cut else len(counted), changes, tuple(one for one in hot if one.changes > 1))


def _key(schema: pa.Schema) -> list[str] | None:
    """Return the key's columns as a file's metadata has them; None if another program wrote it."""
    text = (schema.metadata or {}).get(TABLE)
    return None if text is None else key_names(msgspec.json.decode(text, type=Table))


def _effects(parquet: pq.ParquetFile, names: list[str]) -> pa.Table:
    """Return the keys that a file's changes have an effect on, with 1 for each in `changes`."""
    columns = ["op", *[f"{image}.{name}" for image in ("before", "after") for name in names]]
    rows = read_rows(parquet, columns)
    images = {image: _flat(rows.column(image), names) for image in ("before", "after")}
    has = {image: rows.column(image).is_valid() for image in images}
    same = pc.and_kleene(has["before"], has["after"])
    for name in names:
        same = pc.and_(same, pc.fill_null(pc.equal(images["before"][name], images["after"][name]), False))
    left = images["before"].filter(pc.and_not(has["before"], same))
    found = pa.concat_tables([images["after"].filter(has["after"]), left])
    return found.append_column("changes", pa.repeat(pa.scalar(1, pa.int64()), len(found)))


def _flat(image: pa.ChunkedArray, names: list[str]) -> pa.Table:
    return pa.table({name: pc.struct_field(image, name) for name in names})


def _together(counted: pa.Table | None, waiting: list[pa.Table], names: list[str]) -> pa.Table:
    tables = waiting if counted is None else [counted, *waiting]
    found = pa.concat_tables(tables, promote_options="permissive")
    return found.group_by(names).aggregate([("changes", "sum")]).rename_columns([*names, "changes"])


def _bounded(counted: pa.Table, *, is_cut: bool) -> tuple[pa.Table, bool]:
    if len(counted) <= _MOST_KEYS:
        return counted, is_cut
    return counted.sort_by([("changes", "descending")]).slice(0, _MOST_KEYS // 2), True


def _text(key: dict[str, object]) -> str:
    return msgspec.json.encode(key, enc_hook=str).decode()
