"""The keys of TiDB's schema: `m`, a name, a letter for the kind of data, and a field or index.

A string has one value, a hash one per field, a list one per index and an entry of its own for its bounds.
Source: TiDB's structure package (types.go).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from .key import decode_bytes, decode_int, encode_bytes, encode_int

PREFIX: Final = b"m"
_KIND_BYTES: Final = 8

Kind: TypeAlias = Literal["string", "hash", "hash meta", "list", "list meta"]
_LETTERS: Final[dict[Kind, bytes]] = {
    "string": b"s",
    "hash": b"h",
    "hash meta": b"H",
    "list": b"l",
    "list meta": b"L",
}
_KINDS: Final[dict[bytes, Kind]] = {
    letter.rjust(_KIND_BYTES, b"\0"): kind for kind, letter in _LETTERS.items()
}

DATABASES: Final = b"DBs"
"""Hash: `database_field` of a database's id to its DBInfo."""
DDL_JOBS: Final = b"DDLJobList"
"""List: waiting and running jobs, up to TiDB v6.1."""
DDL_INDEX_JOBS: Final = b"DDLJobAddIdxList"
"""List: those of them that process the rows."""
DDL_HISTORY: Final = b"DDLJobHistory"
"""Hash: `history_field` of a job's id to the finished job."""
SCHEMA_VERSION: Final = b"SchemaVersionKey"
"""String: the number of schema changes so far, in decimal digits."""
NEXT_GLOBAL_ID: Final = b"NextGlobalID"
"""String: the last id that was allocated, in decimal digits."""


class MetaKey(Struct, frozen=True, gc=False):
    """A decoded schema key."""

    name: bytes
    kind: Kind
    field: bytes = b""
    """The field of a hash."""
    index: int = 0
    """The index in a list."""


def encode_meta_key(key: MetaKey) -> bytes:
    """Encode a schema key."""
    start = _start(key.name, key.kind)
    match key.kind:
        case "hash":
            return start + encode_bytes(key.field)
        case "list":
            return start + encode_int(key.index)
    return start


def decode_meta_key(raw: bytes) -> MetaKey:
    """Decode a raw key. Raises ValueError for another kind of key."""
    if raw[:1] != PREFIX:
        raise ValueError(f"not a schema key: {raw.hex()}")
    name, offset = decode_bytes(raw, 1)
    end = offset + _KIND_BYTES
    kind = _KINDS.get(raw[offset:end])
    match kind:
        case None:
            raise ValueError(f"schema key {raw.hex()}: unknown kind {raw[offset:end].hex()}")
        case "hash":
            field, end = decode_bytes(raw, end)
            meta_key = MetaKey(name, kind, field)
        case "list":
            meta_key = MetaKey(name, kind, index=decode_int(raw, end))
            end += 8
        case _:
            meta_key = MetaKey(name, kind)
    if end != len(raw):
        raise ValueError(f"schema key {raw.hex()}: {len(raw) - end} bytes too many")
    return meta_key


def _start(name: bytes, kind: Kind) -> bytes:
    return PREFIX + encode_bytes(name) + _LETTERS[kind].rjust(_KIND_BYTES, b"\0")


def string_key(name: bytes) -> bytes:
    return _start(name, "string")


def hash_key(name: bytes, field: bytes) -> bytes:
    return encode_meta_key(MetaKey(name, "hash", field))


def hash_span(name: bytes) -> tuple[bytes, bytes]:
    """Return the range [start, end) of the raw keys of all fields."""
    return _span(name, "hash")


def list_key(name: bytes, index: int) -> bytes:
    return encode_meta_key(MetaKey(name, "list", index=index))


def list_meta_key(name: bytes) -> bytes:
    return _start(name, "list meta")


def list_span(name: bytes) -> tuple[bytes, bytes]:
    """Return the range [start, end) of the raw keys of all entries."""
    return _span(name, "list")


def _span(name: bytes, kind: Kind) -> tuple[bytes, bytes]:
    start = _start(name, kind)
    return start, start[:-1] + bytes((start[-1] + 1,))


# --- what the hashes and lists hold --------------------------------------------------------------


def database_field(database_id: int) -> bytes:
    """Return the field of a database in DATABASES, which is also the name of the hash of its tables."""
    return b"DB:%d" % database_id


def database_id(field: bytes) -> int:
    """Return the id in a `database_field`. Raises ValueError if it isn't one."""
    kind, _, number = field.partition(b":")
    if kind != b"DB":
        raise ValueError(f"not a database: {field!r}")
    return int(number)


def table_field(table_id: int) -> bytes:
    """Return the field of a table's TableInfo in the hash of its database."""
    return b"Table:%d" % table_id


def is_table_field(field: bytes) -> bool:
    """True if a field of a database's hash contains a TableInfo; the others contain the last ids
    allocated."""
    return field.startswith(b"Table:")


def table_id(field: bytes) -> int:
    """Return the id in a `table_field`. Raises ValueError if it isn't one."""
    return int(field.partition(b":")[2])


def history_field(job_id: int) -> bytes:
    return job_id.to_bytes(8, "big")


def schema_diff(version: int) -> bytes:
    """Return the name of the string that describes the schema change of this version."""
    return b"Diff:%d" % version


def encode_list_meta(first: int, end: int) -> bytes:
    """Encode a list's bounds: the indexes [first, end)."""
    return first.to_bytes(8, "big", signed=True) + end.to_bytes(8, "big", signed=True)
