"""Parsing of options. Each function raises ValueError that names the accepted values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from ..config import Form
from ..errors import ConfigError
from ..events import Ts, compose_ts

Operation: TypeAlias = Literal["insert", "update", "delete", "ddl"]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)

_ADDRESS: Final = re.compile(r"([^\s:/,\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_TABLE: Final = re.compile(r"[^.*?!\[\]\s]+\.[^*?!\[\]]+")

Seconds: TypeAlias = Annotated[float, Meta(ge=0, lt=1e9)]
SOURCE_EXAMPLES: Final = "mysql://user:password@host:3306 or tikv://pd1:2379,pd2:2379"


def as_text(value: object) -> str:
    """Return an option of a feed.toml in the form of Spark's options."""
    match value:
        case dict():
            return msgspec.json.encode(value).decode()
        case list() | tuple():
            return ",".join(map(str, value))
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def source_url(text: str) -> str:
    from .reading import reading_of

    try:
        reading_of(text)
    except ConfigError as error:
        raise ValueError(f"a URL such as {SOURCE_EXAMPLES} ({error})") from None
    return text


def table_name(text: str) -> str:
    if not _TABLE.fullmatch(text):
        raise ValueError('the name of one table, for instance "shop.orders"; patterns go into tables')
    return text


def timestamp(text: str) -> Ts:
    """Parse a TSO or a time."""
    if text.isdecimal() and 0 < int(text) < 1 << 63:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
        return compose_ts(int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ValueError("a TSO, or a time such as 2026-11-21T08:00:00Z (UTC if no zone is given)") from None


def starting_ts(text: str) -> Ts | str:
    if text.lower() in ("latest", "earliest"):
        return text.lower()
    try:
        return timestamp(text)
    except ValueError as error:
        raise ValueError(f"latest, earliest, {error}") from None


def addresses(values: tuple[str, ...], _: str) -> tuple[str, ...]:
    """Return the addresses, if there are some and each is host:port."""
    if not values or not all(_ADDRESS.fullmatch(address) for address in values):
        raise ValueError("addresses host:port, for instance 10.0.0.5:8815,10.0.0.6:8815")
    return values


def option_form(others: str, example: str, noun: str = "option") -> Form:
    """Return a form whose errors name options: `option partitions = '0': ...`. `others` are options besides
    the declared ones, `example` is a value of a required one."""
    return Form(is_text=True, noun=noun, before="option ", shows_values=True, others=others, example=example)


def divided(options: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options without the prefix, and those with it, with the prefix removed."""
    own, prefixed = {}, {}
    for key, text in options.items():
        if key.lower().startswith(prefix):
            prefixed[key.lower().removeprefix(prefix)] = text
        else:
            own[key] = text
    return own, prefixed
