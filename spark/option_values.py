"""Parsing of options. Each function raises ValueError that names the accepted values."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ..config import parse_bytes
from ..errors import ConfigError
from ..events import Ts, compose_ts

OPERATIONS: Final = ("insert", "update", "delete", "ddl")

_ADDRESS: Final = re.compile(r"([^\s:/,\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TABLE: Final = re.compile(r"[^.*?!\[\]\s]+\.[^*?!\[\]]+")

SOURCE_EXAMPLES: Final = "mysql://user:password@host:3306 or tikv://pd1:2379,pd2:2379"


def source_url(text: str) -> str:
    from .reading import reading_of

    try:
        reading_of(text)
    except ConfigError as error:
        raise ValueError(f"a URL such as {SOURCE_EXAMPLES} ({error})") from None
    return text


def patterns(text: str) -> tuple[str, ...]:
    """Parse table patterns, separated by commas."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise ValueError('patterns separated by commas, for instance "shop.*,!shop.tmp_*"')
    return found


def table_name(text: str) -> str:
    if not _TABLE.fullmatch(text):
        raise ValueError('the name of one table, for instance "shop.orders"; patterns go into tables')
    return text


def feed_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("up to 64 letters, digits, - and _")
    return text


def one_of(*accepted: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in accepted:
            raise ValueError(f"accepted: {', '.join(accepted)}")
        return text.lower()

    return parse


def operations(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if not found or not set(found) <= set(OPERATIONS):
        raise ValueError(f"some of {', '.join(OPERATIONS)}, separated by commas")
    return found


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least:,} to {most:,}")
        return int(text)

    return parse


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise ValueError("a number of seconds")
    return found


def size(text: str) -> int:
    try:
        return parse_bytes(text, "")
    except ConfigError:
        raise ValueError('bytes as a number or with a unit, for instance "64MiB"') from None


def timestamp(text: str) -> Ts:
    """Parse a TSO or a time."""
    if text.isdecimal() and 0 < int(text) < 1 << 63:
        return int(text)
    try:
        found = datetime.fromisoformat(text)
        return compose_ts(int(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ValueError("a TSO, or a time such as 2026-11-21T08:00:00Z (UTC if no zone is given)") from None


def starting_ts(text: str) -> Ts | str:
    if text.lower() in ("latest", "earliest"):
        return text.lower()
    try:
        return timestamp(text)
    except ValueError as error:
        raise ValueError(f"latest, earliest, {error}") from None


def addresses(text: str) -> tuple[str, ...]:
    """Parse addresses host:port, separated by commas."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found or not all(_ADDRESS.fullmatch(address) for address in found):
        raise ValueError("addresses separated by commas, for instance 10.0.0.5:8815,10.0.0.6:8815")
    return found


def yes_or_no(text: str) -> bool:
    return one_of("true", "false")(text) == "true"


def any_text(text: str) -> str:
    return text
