"""Rows whose messages are larger than allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ...errors import ConfigError
from ...events import RowChange, Table
from .claims import CLAIM_CHECK, Claim, ClaimStore
from .encoder import Message, refuse
from .options import EncodingOptions, LargeOptions

T = TypeVar("T")

RECORD_BYTES: Final = 36
"""Maximum number of bytes that a Kafka record adds to its key and value; they count towards the limit."""


def check_sizes(
    encoding: str, options: EncodingOptions, changes: Sequence[RowChange], messages: Sequence[Message]
) -> None:
    """Raise NotEncodable if the message of a change is too large, for encodings that can't shorten it."""
    if options.max_message_bytes:
        for change, message in zip(changes, messages, strict=True):
            size = len(message.key or b"") + len(message.value or b"") + RECORD_BYTES
            check_size(encoding, change.table, size, options)


def check_size(encoding: str, table: Table, size: int, options: EncodingOptions) -> None:
    """Raise NotEncodable if a message of this size is too large. RECORD_BYTES are in the size."""
    if 0 < options.max_message_bytes < size:
        refuse(encoding, table, "", f"{_too_large(size, options)}: raise it")


class LargeRows:
    """Replaces the messages of one encoder that are too large, by its options: by those that have only the
    columns of the row's key, which refer to the whole message in a store with claim checks."""

    def __init__(self, encoding: str, options: LargeOptions, claims: ClaimStore | None) -> None:
        """Raises ConfigError for claim checks without a store."""
        self._encoding: Final = encoding
        self._options: Final = options
        self._claims: Final = claims
        self._keeps: Final = options.large_message_handle_option == CLAIM_CHECK
        if self._keeps and claims is None:
            raise ConfigError(
                f'large-message-handle-option = "{CLAIM_CHECK}" is for Kafka only: a file takes messages of '
                "any length"
            )

    def replace(
        self,
        table: Table,
        messages: list[T],
        size: Callable[[T], int],
        short: Callable[[int, str], T],
        claim: Callable[[int], Claim],
        *,
        has_key: bool,
    ) -> None:
        """Replace the messages that are too large.

        `short` gets the place of a message, and the location of the whole one or "". `size` doesn't count
        RECORD_BYTES. Raises NotEncodable before anything is stored, and as ClaimStore.keep.
        """
        limit = self._options.max_message_bytes and self._options.max_message_bytes - RECORD_BYTES
        sizes = list(map(size, messages)) if limit else []
        if not limit or max(sizes) <= limit:
            return
        objects: dict[str, bytes] = {}
        for place in [place for place, length in enumerate(sizes) if length > limit]:
            location = ""
            if self._keeps and self._claims is not None:
                whole = claim(place)
                name = whole.name(self._encoding, self._options)
                objects[name] = whole.content(is_raw=self._options.claim_check_raw_value)
                location = self._claims.location(name)
            else:
                self._check(table, sizes[place], has_key)
            messages[place] = short(place, location)
            if size(messages[place]) > limit:
                part = "the key of a row alone takes"
                if location:
                    part = "the key of a row takes, with the location of the whole,"
                self._refuse(table, f"{part} {size(messages[place])} bytes")
        if objects and self._claims is not None:
            self._claims.keep(objects)

    def _check(self, table: Table, size: int, has_key: bool) -> None:
        """Raise NotEncodable unless the row may be written by its key only."""
        limit = _too_large(size + RECORD_BYTES, self._options)
        if self._options.large_message_handle_option == "none":
            self._refuse(
                table,
                f'{limit}: raise it, or set large-message-handle-option = "handle-key-only" or '
                f'"{CLAIM_CHECK}"',
            )
        if not has_key:
            self._refuse(table, f"{limit}, and the table has no key by which to write it")

    def _refuse(self, table: Table, reason: str) -> None:
        refuse(self._encoding, table, "", reason)


def _too_large(size: int, options: EncodingOptions) -> str:
    return f"a row takes {size} bytes, more than max-message-bytes = {options.max_message_bytes}"
