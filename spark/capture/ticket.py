"""Requests to a capture, as JSON; docs/how-to/capture.md describes them for other clients."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...chain.selection.tables import TablePatterns
from ...errors import ConfigError
from ..offsets.offset import Offset
from ..option_values import OPERATIONS
from ..read.parts import WHOLE, Part

T = TypeVar("T")


class Ticket(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for the changes in (start, end] of the tables that match the patterns and the part."""

    start: Offset
    end: Offset
    tables: tuple[str, ...]
    part: Part = WHOLE
    operations: tuple[str, ...] = OPERATIONS
    lease: str = ""
    """The query's lease, which `acknowledge` requires; empty: only reads."""
    wait_seconds: float = 20.0
    """Maximum time to wait for changes that haven't arrived yet."""

    def check(self) -> None:
        """Raise ConfigError for invalid patterns, parts or operations."""
        TablePatterns.parse(self.tables)
        if not 0 <= self.part.number < self.part.of:
            raise ConfigError(f"part {self.part.number} of {self.part.of}: parts count from 0")
        if self.part.is_range:
            raise ConfigError("part: a capture has no keys of rows; ask for whole tables")
        if unknown := set(self.operations) - set(OPERATIONS):
            raise ConfigError(f"operation {min(unknown)!r}: accepted are {', '.join(OPERATIONS)}")


class Acknowledge(Struct, frozen=True, forbid_unknown_fields=True):
    """A permission to free all changes up to `upto`."""

    lease: str
    upto: Offset


class End(Struct, frozen=True):
    """The metadata of an answer's last message, which has no rows; without it the answer is incomplete."""

    rows: int
    """Number of rows of the whole answer."""
    end: Offset
    """End of the ticket's range."""


def read(kind: type[T], what: str, raw: bytes) -> T:
    """Decode a request. Raises ConfigError that names `what` if `raw` isn't its JSON."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise ConfigError(f"not {what}: {error}") from None


def write(value: Any) -> bytes:
    return msgspec.json.encode(value)
