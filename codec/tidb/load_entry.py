"""Changes that begin and mark the load of a table, among the raw changes of TiKV.

The load is a keyspace of its own. Each step of it is a transaction at a ts of its own: a change with the key
LOAD_KEY, which sorts before its rows, and for a chunk the rows as of that ts.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from ...events import PUT, Chunk, KvChange, Ts

LOAD_KEY: Final = b"load"
"""Below every key of a job or a row."""


class NewTable(Struct, frozen=True, tag="new"):
    """The table is created, as it is at that ts."""

    table_id: int


class GoneTable(Struct, frozen=True, tag="gone"):
    """The source has no such table at that ts, or it isn't followed."""

    schema: str
    table: str


class LoadedRows(Struct, frozen=True, tag="rows"):
    """The other changes of that ts are rows of a chunk."""

    chunk: Chunk


LoadEntry: TypeAlias = NewTable | GoneTable | LoadedRows

_ENCODER: Final = Encoder()
_DECODER: Final = Decoder(LoadEntry)


def load_change(entry: LoadEntry, ts: Ts) -> KvChange:
    """Return the change of a step at `ts`. It sorts after every other transaction of that commit ts."""
    return KvChange(ts, ts, PUT, LOAD_KEY, _ENCODER.encode(entry))


def read_load(change: KvChange) -> LoadEntry:
    load: LoadEntry = _DECODER.decode(change.value)
    return load
