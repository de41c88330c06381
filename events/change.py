"""Raw changes: a source's bytes, until they are in commit order."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .ts import Ts

DELETE: Final = 0
PUT: Final = 1


class KvChange(Struct, frozen=True, gc=False, order=True, array_like=True):
    """One raw change. The fields are in sort order: comparing two changes is the commit order."""

    commit_ts: Ts
    start_ts: Ts
    op: int
    """DELETE or PUT; a DELETE sorts before a PUT of the same transaction."""
    key: bytes
    value: bytes
    old_value: bytes = b""
    region_id: int = 0
    """TiKV: the region it came from. Binlog: the table layout its rows are written in."""


class Changes(Struct, frozen=True, gc=False):
    """From a puller to a table's Writer: changes in any order, and a resolved ts.

    All changes at or below `resolved` have been sent, including these; 0 leaves the resolved ts as it is.
    """

    changes: list[KvChange]
    resolved: Ts = 0


class Sorted(Struct, frozen=True, gc=False):
    """From the sorter onward: changes in commit order; nothing at or below `resolved` will follow.

    A transaction is all changes of one commit ts and start ts. Changes of the same commit ts come together,
    unless they are larger than memory.
    """

    changes: list[KvChange]
    resolved: Ts
    continues: bool = False
    """True if more changes of the last commit ts may follow, of the same transaction or others. The next
    Sorted begins with them if there are any."""
