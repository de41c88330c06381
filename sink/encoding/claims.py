"""Claim checks: a message that is too large is in a store, and the one in its place refers to it.

Source: TiCDC's documentation of its claim checks, and its published code, whose readers find an object by the
last part of its location.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ...events import Ts
from .json_text import json_bytes
from .options import LargeOptions

CLAIM_CHECK = "claim-check"
"""The value of `large_message_handle_option` for claim checks."""


class ClaimStore(Protocol):
    """A store for the messages of one sink that are too large."""

    def location(self, name: str) -> str:
        """Return the URL of an object."""
        ...

    def keep(self, objects: Mapping[str, bytes]) -> None:
        """Write objects durably, contents by name; one that is there is replaced.

        Raises Retryable if the store doesn't answer, SinkError if it refuses.
        """


class Claim(NamedTuple):
    """The whole message of a row that is too large."""

    commit_ts: Ts
    key: bytes | None
    value: bytes
    stamp: bytes
    """Bytes that are the same whenever the row is encoded."""

    def name(self, encoding: str, options: LargeOptions) -> str:
        """Return the object's name: the same for the same row and options, so that a replay replaces it."""
        form = options.large_message_handle_compression, options.claim_check_raw_value
        digest = hashlib.sha256(f"{encoding} {form}\n".encode() + self.stamp).hexdigest()
        return f"{self.commit_ts:020}-{digest[:32]}.json"

    def content(self, *, is_raw: bool) -> bytes:
        """Return the object: the value alone, or key and value as JSON with base64."""
        if is_raw:
            return self.value
        return json_bytes({"key": _base64(self.key), "value": _base64(self.value)})


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
