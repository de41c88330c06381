"""Changes of parts of a JSON document (binlog_row_value_options = PARTIAL_JSON).

A list of changes, each a byte of operation, a path as text, and the new value if it isn't REMOVE; lengths
are length-encoded integers. Source: MySQL's json_diff.h.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from .json import Json, decode_json, print_json

_REPLACE, _INSERT, _REMOVE = range(3)
_LEG: Final = re.compile(r'\.(?:("(?:[^"\\]++|\\.)*+")|([^.\[\]"\s]+))|\[(\d+)\]', re.DOTALL)
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def changed_json(document: bytes | None, changes: bytes) -> str:
    """Return the text of a document after changes. Raises ValueError, LookupError or struct.error if they
    don't fit it or can't be read."""
    if document is None:
        raise ValueError("NULL has no parts")
    value = decode_json(document)
    offset = 0
    while offset < len(changes):
        operation = changes[offset]
        path, offset = _counted(changes, offset + 1)
        new: Json = ""
        if operation != _REMOVE:
            data, offset = _counted(changes, offset)
            if not data:
                raise ValueError("a change of JSON has no value")
            new = decode_json(data)
        legs = _legs(path.decode())
        if legs:
            _change(operation, value, legs, new)
        elif operation == _REPLACE:
            value = new
        else:
            raise ValueError("a whole document can only be replaced")
    return print_json(value)


def _counted(data: bytes, offset: int) -> tuple[bytes, int]:
    length = data[offset]
    offset += 1
    if length >= 0xFB:
        size = _LENGTH_BYTES[length]
        length = int.from_bytes(data[offset : offset + size], "little")
        offset += size
    end = offset + length
    if end > len(data):
        raise ValueError("a change of JSON is cut off")
    return data[offset:end], end


def _legs(path: str) -> list[str | int]:
    """Return the keys and indexes of a path such as $.a."b c"[0]."""
    if not path.startswith("$"):
        raise ValueError("a path of JSON doesn't begin with $")
    legs: list[str | int] = []
    offset = 1
    while offset < len(path):
        leg = _LEG.match(path, offset)
        if leg is None:
            raise ValueError("a path of JSON can't be read")
        quoted, key, index = leg.groups()
        legs.append(int(index) if index else key or json.loads(quoted))
        offset = leg.end()
    return legs


def _change(operation: int, value: Json, legs: list[str | int], new: Json) -> None:
    container: Any = value
    for leg in legs[:-1]:
        container = container[_place(container, leg)]
    leg = legs[-1]
    if operation == _REPLACE:
        container[_place(container, leg)] = new
    elif operation == _REMOVE:
        del container[_place(container, leg)]
    elif operation != _INSERT:
        raise ValueError(f"a change of JSON can't be {operation}")
    elif isinstance(container, list) and isinstance(leg, int):
        container.insert(leg, new)
    elif isinstance(container, dict) and isinstance(leg, str) and leg not in container:
        container[leg] = new
        members = sorted(container.items(), key=_order)
        container.clear()
        container.update(members)
    else:
        raise ValueError("a value can't be inserted into JSON there")


def _place(container: Json, leg: str | int) -> Any:
    """Return the key or index if the container has it."""
    if isinstance(container, dict) and isinstance(leg, str) and leg in container:
        return leg
    if isinstance(container, list) and isinstance(leg, int) and leg < len(container):
        return leg
    raise ValueError("a changed part of JSON doesn't exist")


def _order(member: tuple[str, Json]) -> tuple[int, bytes]:
    """Order of an object's members: by the length of their keys, then by their bytes."""
    key = member[0].encode()
    return len(key), key
