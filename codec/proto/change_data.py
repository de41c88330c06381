"""The messages of a store's change feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError as DecodeError
from msgspec import Struct

from ..native import library
from . import cdcpb

Row: TypeAlias = tuple[int, int, int, int, bytes, bytes, bytes, int]
"""Type (cdcpb.Event.LogType), op (cdcpb.Event.Row.OpType), start ts, commit ts, raw key, value, old value and
generation of a cdcpb.Event.Row."""

Rows: TypeAlias = Sequence[Row]
"""Rows of one event of a region, at least one; native ones are in the message's bytes until they are asked
for."""

Payload: TypeAlias = Rows | int | cdcpb.Error
"""Payload of an event: rows, the region's resolved ts or an error."""


class Resolved(Struct, frozen=True, gc=False):
    """A resolved ts of many regions."""

    packed: bytes
    """The regions' ids as on the wire, for `unpack`: often they repeat and only the ts moves."""
    ts: int
    request_id: int


class ChangeData(Struct, frozen=True, gc=False):
    """A ChangeDataEvent."""

    events: Sequence[tuple[int, int, Payload]]
    """Region id, request id and payload of each event, in order; without unknown and empty ones.

    The rows of an event are in order of their types, prewrites before commits and rollbacks, as in the
    store's log for each key; in order within a type. In an event with INITIALIZED all rows stay in order.
    """
    resolved: Resolved | None = None
    """The resolved ts of many regions, which follows the events."""


def read(data: bytes) -> ChangeData:
    """Read a serialised ChangeDataEvent. Raises DecodeError for invalid bytes."""
    events = library.native.change_data(data) if library.in_use else None
    if events is not None:
        return ChangeData(events)
    message = _Message.FromString(data)
    resolved = None
    if message.HasField("resolved_ts"):
        watermark = message.resolved_ts
        resolved = Resolved(watermark.regions or _packed(data), watermark.ts, watermark.request_id)
    return ChangeData([*_events(map(cdcpb.Event.FromString, message.events))], resolved)


def unpack(packed: bytes) -> Sequence[int]:
    """Return the region ids of a Resolved. Raises DecodeError if they are invalid."""
    size = len(packed)
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    ids: Sequence[int] = _Ids.FromString(b"".join((_FIRST, length, packed))).ids[:]
    return ids


def rows_of(entries: Iterable[cdcpb.Event.Row]) -> list[Row]:
    """Return some cdcpb.Event.Row in the order of an event's payload."""
    rows = [
        (r.type, r.op_type, r.start_ts, r.commit_ts, r.key, r.value, r.old_value, r.generation)
        for r in entries
    ]
    if not any(row[0] == cdcpb.Event.INITIALIZED for row in rows):
        rows.sort(key=itemgetter(0))
    return rows


def _events(events: Iterator[cdcpb.Event]) -> Iterator[tuple[int, int, Payload]]:
    for event in events:
        match event.WhichOneof("event"):
            case "entries" if event.entries.entries:
                yield event.region_id, event.request_id, rows_of(event.entries.entries)
            case "resolved_ts":
                yield event.region_id, event.request_id, event.resolved_ts
            case "error":
                yield event.region_id, event.request_id, event.error


def _packed(data: bytes) -> bytes:
    """Return the packed ids of a sender that doesn't pack them, or has none."""
    ids = cdcpb.ChangeDataEvent.FromString(data).resolved_ts.regions
    packed: bytes = _Ids(ids=ids).SerializeToString()
    offset = 1
    while packed[offset : offset + 1] > b"\x7f":
        offset += 1
    return packed[offset + 1 :]


def _declare() -> tuple[Any, Any]:
    """Declare classes that are wire-compatible with cdcpb's, but leave events and region ids as bytes."""
    field = descriptor_pb2.FieldDescriptorProto
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    uint64, data, inner = field.TYPE_UINT64, field.TYPE_BYTES, field.TYPE_MESSAGE
    file = descriptor_pb2.FileDescriptorProto(
        name="change_data.proto", package="change_data", syntax="proto3"
    )

    def message(name: str, *fields: tuple[Any, ...]) -> None:
        declared = file.message_type.add(name=name)
        for label, kind, number, field_name, *of in fields:
            declared.field.add(
                label=label, type=kind, number=number, name=field_name, type_name=of[0] if of else None
            )

    message("Ids", (many, uint64, 1, "ids"))
    message("Resolved", (one, data, 1, "regions"), (one, uint64, 2, "ts"), (one, uint64, 3, "request_id"))
    message(
        "ChangeDataEvent",
        (many, data, 1, "events"), (one, inner, 2, "resolved_ts", ".change_data.Resolved"),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    whole, ids = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"change_data.{name}"))
        for name in ("ChangeDataEvent", "Ids")
    )
    return whole, ids


_Message, _Ids = _declare()
_FIRST: Final = b"\x0a"
"""The tag of a packed field 1."""
