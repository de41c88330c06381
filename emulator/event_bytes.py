"""ChangeDataEvents assembled from serialized parts: an event for many streams is serialized once.

Protobuf messages may be concatenated: a later field is added to what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..codec.proto import cdcpb
from ..codec.tidb.number import encode_uvarint
from .percolator import Row
from .shard import PUT

_EVENTS = b"\x0a"
"""Field 1 of ChangeDataEvent, an Event."""
_REQUEST_ID = b"\x38"
"""Field 7 of Event, a varint."""

OP_PUT: int = cdcpb.Event.Row.OpType.PUT
OP_DELETE: int = cdcpb.Event.Row.OpType.DELETE


def rows_event(region_id: int, rows: Iterable[Row], *, old_values: bool) -> bytes:
    """Serialize an Event without its request id."""
    event = cdcpb.Event(region_id=region_id)
    add = event.entries.entries.add
    for row in rows:
        made = add(
            type=row.type, key=row.key, start_ts=row.start_ts, commit_ts=row.commit_ts, value=row.value
        )
        if row.op >= 0:
            made.op_type = OP_PUT if row.op == PUT else OP_DELETE
        if old_values and row.old_value:
            made.old_value = row.old_value
        if row.generation:
            made.generation = row.generation
    return event.SerializeToString()


def error_event(region_id: int, error: cdcpb.Error | None) -> bytes:
    """Serialize an Event without its request id; `error` is a cdcpb.Error."""
    return cdcpb.Event(region_id=region_id, error=error).SerializeToString()


def framed(event: bytes, request_id: int) -> bytes:
    """Return an Event as a field of ChangeDataEvent."""
    whole = event + _REQUEST_ID + encode_uvarint(request_id) if request_id else event
    return _EVENTS + encode_uvarint(len(whole)) + whole


def resolved_message(regions: Sequence[int], ts: int, request_id: int = 0) -> bytes:
    """Serialize a ChangeDataEvent of one resolved ts."""
    message = cdcpb.ChangeDataEvent(resolved_ts={"regions": regions, "ts": ts, "request_id": request_id})
    return message.SerializeToString()
