"""Checkpoints as text: readable JSON with a version and a checksum."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ..errors import CheckpointError
from ..events import (
    PENDING,
    STALE,
    WHOLE,
    Checkpoint,
    Owner,
    Parking,
    SnapshotProgress,
    TablePosition,
    TableProgress,
    physical_ms,
)

VERSION: Final = 2
"""Version of the format, the only one that is read."""
PACKED_TABLES: Final = 200
"""Number of tables above which their progress is compressed: a checkpoint is written once or twice for each
table, and a server logs the row before and after."""
_MAX_PACKED_BYTES: Final = 1 << 30
"""Maximum size of an uncompressed progress."""
_WHOLE: Final = "whole"
_STALE: Final = "stale"
_PENDING: Final = "pending"
_PARKED: Final = "parked"
"""Key of a parked table's fields, ..."""
_IS_PENDING: Final = "pending"
"""... and of True if the target doesn't have the table."""


def encode_checkpoint(checkpoint: Checkpoint, length: int = 0) -> str:
    """Encode a checkpoint; `length` is stored with it for a sink that needs one: the length of its file."""
    loading = _loading_to_json(checkpoint.loading)
    is_packed = loading is not None and len(loading) > PACKED_TABLES
    document: dict[str, object] = {
        "version": VERSION,
        "ts": checkpoint.ts,
        "time": _moment(checkpoint.ts),
        "position": checkpoint.position,
        "source": checkpoint.source,
        "loading": _packed(loading) if is_packed else loading,
        "owner": msgspec.to_builtins(checkpoint.owner),
        "tables": msgspec.to_builtins(checkpoint.tables),
    }
    if checkpoint.stages:
        document["stages"] = checkpoint.stages
    if length:
        document["length"] = length
    return json.dumps(document | {"checksum": _checksum(document)}, ensure_ascii=False)


def decode_checkpoint(text: str, where: str) -> tuple[Checkpoint, int]:
    """Return the checkpoint and its `length`. Raises CheckpointError, naming the location `where`."""
    try:
        document = json.loads(text)
        checksum = document.pop("checksum")
        version = document["version"]
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(_damaged(where, "it is incomplete")) from None
    if version != VERSION:
        raise CheckpointError(
            f"{where} holds a checkpoint of version {version!r}; this tidemill reads version {VERSION}: "
            "run the tidemill that wrote it"
        )
    if checksum != _checksum(document):
        raise CheckpointError(_damaged(where, "its checksum doesn't match"))
    if isinstance(document["loading"], str):
        document["loading"] = _unpacked(document["loading"])
    checkpoint = Checkpoint(
        document["ts"],
        document["position"],
        _loading_from_json(document["loading"]),
        document["source"],
        msgspec.convert(document["owner"], Owner | None),
        msgspec.convert(document["tables"], dict[str, TablePosition]),
        document.get("stages", {}),
    )
    return checkpoint, document.get("length", 0)


def _damaged(where: str, why: str) -> str:
    return (
        f"the checkpoint in {where} is damaged: {why}. Put back a copy of it; or, to begin again with "
        "a snapshot, remove it together with what the target holds"
    )


def _checksum(document: dict[str, object]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(canonical.encode()):08x}"


def _moment(ts: int) -> str | None:
    """Return the ts as a readable time; None if there is none, as before the first transaction."""
    try:
        return datetime.fromtimestamp(physical_ms(ts) / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _packed(loading: dict[str, object] | None) -> str:
    text = json.dumps(loading, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 1)).decode()


def _unpacked(packed: str) -> dict[str, object]:
    """The checksum has shown that it is what was written."""
    text = zlib.decompressobj().decompress(b64decode(packed), _MAX_PACKED_BYTES)
    fields: dict[str, object] = json.loads(text)
    return fields


def _loading_to_json(loading: SnapshotProgress | None) -> dict[str, object] | None:
    if loading is None:
        return None
    return {name: _progress_to_json(loaded) for name, loaded in loading.items()}


def _progress_to_json(loaded: TableProgress) -> str | list[int | str] | dict[str, object]:
    if loaded.parked is not None:
        return {_PARKED: msgspec.to_builtins(loaded.parked), _IS_PENDING: loaded.pending}
    if loaded.stale:
        return _STALE
    if loaded.pending:
        return _PENDING
    return _WHOLE if loaded.last is None else list(loaded.last)


def _loading_from_json(loading: dict[str, object] | None) -> SnapshotProgress | None:
    if loading is None:
        return None
    return {name: _progress_from_json(loaded) for name, loaded in loading.items()}


def _progress_from_json(loaded: Any) -> TableProgress:
    if isinstance(loaded, dict):
        parking = msgspec.convert(loaded[_PARKED], Parking)
        return TableProgress((), pending=loaded[_IS_PENDING], parked=parking)
    if loaded == _STALE:
        return STALE
    if loaded == _PENDING:
        return PENDING
    return WHOLE if loaded == _WHOLE else TableProgress(tuple(loaded))
