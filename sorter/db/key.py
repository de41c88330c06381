"""Keys in the store, and which store a table belongs to."""

from __future__ import annotations

from itertools import count
from struct import Struct
from typing import Final

from ...events import DELETE, KvChange
from ..keyspace import SortKeyspace
from ..run import SortRun

_BLOCK: Final = Struct(">IQQQQ")
_EVENT: Final = Struct(">IQQQH")
_sequence: Final = count(1)

_OP_CODES: Final = {True: 0xFFFF ^ 2, False: 0xFFFF ^ 1}
"""By whether it is a DELETE: the complements of 2 and 1, so that a DELETE sorts before a PUT."""


def block_key(run: SortRun) -> bytes:
    """uid (4 bytes), table (8), first commit ts (8), first start ts (8), sequence (8), big-endian.

    A block of several tables has zeros for uid and table. The sequence keeps apart blocks that begin
    alike: a transaction may be longer than a block.
    """
    uid, table_id = (run.tables[0].uid, run.tables[0].id) if len(run.tables) == 1 else (0, 0)
    return _BLOCK.pack(uid, table_id, *run.first[:2], next(_sequence))


def is_mixed(key: bytes) -> bool:
    """Return True if a block has changes of several tables: uids begin at 1."""
    return key.startswith(b"\0\0\0\0")


def table_id_of(key: bytes) -> int:
    """The id of the table that a key of either layout is for; 0 of a block of several."""
    return int.from_bytes(key[4:12], "big")


def event_key(table: SortKeyspace, change: KvChange) -> bytes:
    """uid (4 bytes), table (8), commit ts (8), start ts (8), op code (2), big-endian, then the key.

    Byte order is the order of changes.
    """
    op = _OP_CODES[change.op == DELETE]
    return _EVENT.pack(table.uid, table.id, change.commit_ts, change.start_ts, op) + change.key


def store_of(table_id: int, stores: int) -> int:
    """The number of the store that a table's changes go to: the same in every run."""
    return fnv1(table_id.to_bytes(8, "little")) % stores


def fnv1(data: bytes) -> int:
    """The FNV-1 hash of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = digest * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF ^ byte
    return digest
