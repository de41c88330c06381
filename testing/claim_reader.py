"""A reader of claim checks, which finds an object by the last part of its location, as TiCDC's does."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any


def whole(document: dict[str, Any], read: Callable[[str], bytes]) -> dict[str, Any]:
    """Return the message of canal-json that another one refers to; that one itself if it refers to none.

    `read` returns an object's content by its name; it isn't compressed, and not a raw value.
    """
    location = document.get("_tidb", {}).get("claimCheckLocation")
    if location is None:
        return document
    stored = json.loads(read(location.rpartition("/")[2]))
    assert stored["key"] is None
    message: dict[str, Any] = json.loads(b64decode(stored["value"]))
    assert (message["database"], message["table"]) == (document["database"], document["table"])
    assert message["_tidb"]["commitTs"] == document["_tidb"]["commitTs"]
    return message
