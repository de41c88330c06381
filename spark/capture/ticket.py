"""What is asked of a capture, as JSON; docs/capture.md describes it for other clients."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...errors import ConfigError
from ...routing import TableFilter
from ..offsets.offset import Offset
from ..option_values import OPERATIONS
from ..read.parts import WHOLE, Part

T = TypeVar("T")


class Ticket(Struct, frozen=True, forbid_unknown_fields=True):
    """The changes in (start, end] of the tables that the patterns name and the part has."""

    start: Offset
    end: Offset
    tables: tuple[str, ...]
    part: Part = WHOLE
    operations: tuple[str, ...] = OPERATIONS
    lease: str = ""
    """Whose the changes are: what `acknowledge` is allowed with. Empty: only reads."""
    wait_seconds: float = 20.0
    """How long to wait for changes that are still to come."""

    def check(self) -> None:
        """Raises ConfigError for patterns, parts or operations that can't be."""
        TableFilter(self.tables)
        if not 0 <= self.part.number < self.part.of:
            raise ConfigError(f"part {self.part.number} of {self.part.of}: parts count from 0")
        if self.part.is_range:
            raise ConfigError("part: a capture has no keys of rows; ask for whole tables")
        if unknown := set(self.operations) - set(OPERATIONS):
            raise ConfigError(f"operation {min(unknown)!r}: accepted are {', '.join(OPERATIONS)}")


class Acknowledge(Struct, frozen=True, forbid_unknown_fields=True):
    """Nobody asks again for what is at or before `upto`."""

    lease: str
    upto: Offset


class End(Struct, frozen=True):
    """The last message of an answer, which has no rows: without it the answer is short."""

    rows: int
    """Of the whole answer."""
    end: Offset
    """The ticket's."""


def read(kind: type[T], what: str, raw: bytes) -> T:
    """Raises ConfigError if `raw` is not the JSON of one."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise ConfigError(f"not {what}: {error}") from None


def write(value: Any) -> bytes:
    return msgspec.json.encode(value)
