"""Rows whose messages are larger than allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...events import RowChange, Table
from .encoder import Message, refuse
from .options import EncodingOptions

RECORD_BYTES: Final = 36
"""Maximum number of bytes that a Kafka record adds to its key and value; they count towards the limit."""


def too_large(encoding: str, table: Table, size: int, options: EncodingOptions, has_key: bool) -> None:
    """Raise NotEncodable unless the row may be written by its key only."""
    limit = f"a row takes {size} bytes, more than max-message-bytes = {options.max_message_bytes}"
    if options.large_message_handle_option != "handle-key-only":
        refuse(
            encoding, table, "", f'{limit}: raise it, or set large-message-handle-option = "handle-key-only"'
        )
    if not has_key:
        refuse(encoding, table, "", f"{limit}, and the table has no key by which to write it")


def check_sizes(
    encoding: str, options: EncodingOptions, changes: Sequence[RowChange], messages: Sequence[Message]
) -> None:
    """Raise NotEncodable if the message of a change is too large, for encodings that can't shorten it."""
    if limit := options.max_message_bytes:
        for change, message in zip(changes, messages, strict=True):
            size = len(message.key or b"") + len(message.value or b"") + RECORD_BYTES
            if size > limit:
                too_large(encoding, change.table, size, options, has_key=False)


def shorten(
    encoding: str,
    table: Table,
    options: EncodingOptions,
    values: list[bytes],
    key_only: Callable[[int], bytes] | None,
) -> None:
    """Replace values that are too large by those that have only the row's key.

    `key_only` gets the place of a value; None if the table has no key. Raises NotEncodable.
    """
    limit = options.max_message_bytes and options.max_message_bytes - RECORD_BYTES
    if not limit or max(map(len, values)) <= limit:
        return
    for place, value in enumerate(values):
        if len(value) > limit:
            too_large(encoding, table, len(value), options, key_only is not None)
            assert key_only is not None
            values[place] = key_only(place)
            if len(values[place]) > limit:
                reason = f"the key of a row alone takes {len(values[place])} bytes"
                refuse(encoding, table, "", reason)
