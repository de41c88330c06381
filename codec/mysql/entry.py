"""The encoding of a binlog transaction as raw changes, from the puller to the mounter.

Each change of a transaction is one `KvChange` whose key is its number in the transaction and its
kind, so the sorter keeps the source's own order. `KvChange.region_id` is the number of the layout
(`Layouts`) that ROWS and RESULT_ROWS are written in. Every transaction ends with ROWS that have the source's
position after it in `old_value`, as text, or with one COMMIT.

| kind            | value                                                                        |
|-----------------|------------------------------------------------------------------------------|
| ROWS            | a rows event: the 19-byte header and the body, without the checksum          |
| RESULT_ROWS     | snapshot rows: binary-protocol row packets, each with its 4-byte packet header |
| DDL             | `Query`, `NewTable`, `GoneTable`, `ChunkRows` or `Definitions`               |
| COMMIT          | `Commit`                                                                     |
| ROLLBACK_MARKER | empty; number 0, so it sorts first: the transaction's other changes are void |

A ROLLBACK_MARKER takes back a transaction of which a part was already sent: the source rolled it back, or the
connection was lost in the middle of a table's rows. Its end still moves the position.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packing
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from ...events import Chunk, KvChange, OrderedKey
from .collation import Charset
from .known_table import KnownTable

ROWS: Final = 1
DDL: Final = 3
COMMIT: Final = 4
ROLLBACK_MARKER: Final = 5
RESULT_ROWS: Final = 6
"""Number 2 was that of rows in the text protocol."""

_key = Packing(">QB").pack


def entry_key(sequence: int, kind: int) -> bytes:
    """Return the key of a transaction's change number `sequence`; its last byte is the kind."""
    return _key(sequence, kind)


class Commit(Struct, frozen=True, gc=False, array_like=True):
    """The end of a transaction, with the source's position after it."""

    position: str
    chunk: Chunk | None = None
    """Set if the rows are part of a snapshot."""


class Query(Struct, frozen=True, tag="query"):
    """A statement that the source logged as text."""

    schema: str
    """The default database of its session."""
    query: str
    epoch_seconds: float
    """The source's clock when it ran."""
    sql_mode: int = 0
    """The session's sql_mode, as a set of bits."""
    converts_strings: bool = False
    """True if the session converted strings to another character set, which may not have all their
    characters."""
    explicit_timestamps: bool = True
    """True if the session had explicit_defaults_for_timestamp."""
    time_zone: str = "+00:00"
    """The session's time zone; "SYSTEM" is the server's own."""
    utc_offset_seconds: int | None = 0
    """UTC offset of the session's clock in seconds; None if it can't be determined."""
    server_charset: Charset | None = None
    """The session's collation_server: the default of a new database; None if it isn't known."""
    position: str = ""
    """The source's position after the statement."""
    error: int = 0
    """Number of the error with which the statement failed after a part of its effect; 0 if it succeeded."""


class NewTable(Struct, frozen=True, tag="table"):
    """The start of a table's snapshot."""

    known: KnownTable


class GoneTable(Struct, frozen=True, tag="gone"):
    """A table that was to be loaded again, but isn't in the source any more."""

    schema: str
    name: str


class ChunkRows(Struct, frozen=True, tag="chunk"):
    """The start of a chunk of a table's rows.

    ROWS that follow are the table's changes that were logged while the chunk was read. Then come the rows as
    they were read (RESULT_ROWS), with the effect of some, all or none of these changes.
    """

    schema: str
    name: str
    after: OrderedKey
    """The chunk's rows have keys above this one."""


class Definitions(Struct, frozen=True, tag="definitions"):
    """The server's defaults, and tables that aren't loaded, as they are at this place in the log."""

    databases: tuple[tuple[str, Charset], ...]
    collations: dict[str, str]
    """Default collation by character set."""
    folds_names: bool = False
    """True if the server stores names of tables in lower case, as lower_case_table_names = 1 says."""
    tables: tuple[KnownTable, ...] = ()
    loading: bool = False
    """True if other followed tables come as NewTable until the end of the snapshot; else there are none."""


Statement: TypeAlias = Query | NewTable | GoneTable | ChunkRows | Definitions

_encode = Encoder().encode
_commit = Decoder(Commit).decode
_statement: Callable[[bytes], Statement] = Decoder(Statement).decode


def encode_commit(commit: Commit) -> bytes:
    return _encode(commit)


def decode_commit(value: bytes) -> Commit:
    return _commit(value)


def position_of(change: KvChange) -> str | None:
    """Return the source's position after a transaction, if this is its last change."""
    if change.old_value:
        return change.old_value.decode()
    return decode_commit(change.value).position if change.key[-1] == COMMIT else None


def encode_statement(statement: Statement) -> bytes:
    return _encode(statement)


def decode_statement(value: bytes) -> Statement:
    return _statement(value)
