"""Avro's binary encoding of single values."""

from __future__ import annotations

from typing import Any

from ...codec.tidb.number import encode_varint

long_bytes = encode_varint
"""Returns a number of at most 64 bits as int or long, which are written in the same way."""


def text_bytes(value: str) -> bytes:
    encoded = value.encode()
    return long_bytes(len(encoded)) + encoded


def avro_bytes(schema: Any, value: Any) -> bytes:
    """Return a value by its schema, for what isn't written for each row.

    A record is a dict; a union has null and one other branch. Names of records aren't resolved.
    """
    if isinstance(schema, list):
        place = next(i for i, branch in enumerate(schema) if (branch == "null") == (value is None))
        return long_bytes(place) + avro_bytes(schema[place], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "record":
            fields = schema["fields"]
            return b"".join([avro_bytes(one["type"], value[one["name"]]) for one in fields])
        case "array":
            items = [avro_bytes(schema["items"], item) for item in value]
            return b"".join([long_bytes(len(items)), *items, b"\0"]) if items else b"\0"
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return long_bytes(value)
        case "string":
            return text_bytes(value)
    raise NotImplementedError(f"Avro's type {kind}")
