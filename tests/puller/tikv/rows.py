"""Rows of a change feed written as words, and change data of them."""

from __future__ import annotations

from tidemill.codec.blocks import new_builder
from tidemill.codec.proto import cdcpb
from tidemill.codec.proto.change_data import read

TYPES = {
    "prewrite": cdcpb.Event.PREWRITE,
    "commit": cdcpb.Event.COMMIT,
    "rollback": cdcpb.Event.ROLLBACK,
    "committed": cdcpb.Event.COMMITTED,
    "initialized": cdcpb.Event.INITIALIZED,
}
OPS = {"put": cdcpb.Event.Row.PUT, "delete": cdcpb.Event.Row.DELETE}


def row(kind: str, key: str = "", op: str = "", **more: int | str):
    """For instance row("commit", "a", "put", start_ts=5, commit_ts=7)."""
    encoded = {name: value.encode() if isinstance(value, str) else value for name, value in more.items()}
    return cdcpb.Event.Row(
        type=TYPES[kind], key=key.encode(), op_type=OPS.get(op, cdcpb.Event.Row.UNKNOWN), **encoded
    )


def parsed(line: str):
    """A row from `<kind> [put|delete] [<key>] [start=] [commit=] [value=] [old=] [generation=]`."""
    kind, *words = line.split()
    names = {"start": "start_ts", "commit": "commit_ts", "old": "old_value"}
    more = {}
    rest = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            name = names.get(name, name)
            more[name] = int(value) if name in ("start_ts", "commit_ts", "generation") else value
        else:
            rest.append(word)
    op = rest.pop(0) if rest and rest[0] in OPS else ""
    return row(kind, *rest, op=op, **more)


def change_data(*events, resolved=None) -> bytes:
    """A ChangeDataEvent of (region id, request id, rows) each."""
    message = cdcpb.ChangeDataEvent()
    for region_id, request_id, rows in events:
        event = message.events.add(region_id=region_id, request_id=request_id)
        event.entries.SetInParent()
        event.entries.entries.extend(rows)
    if resolved is not None:
        message.resolved_ts.CopyFrom(resolved)
    return message.SerializeToString()


def fed(matcher, rows):
    """The changes that a matcher gives for rows that come in one event."""
    builder = new_builder()
    for _, _, payload in read(change_data((matcher.region.id, 1, rows))).events:
        matcher.feed(payload, builder)
    return [*builder.take()]
