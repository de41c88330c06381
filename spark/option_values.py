"""Parsing of options. Each function raises ValueError that names the accepted values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from ..config import Form
from ..config.form import nearest
from ..config.url import redacted
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


def addresses(found: tuple[str, ...], _: str) -> tuple[str, ...]:
    """Return the addresses, if there are some and each is host:port."""
    if not found or not all(_ADDRESS.fullmatch(address) for address in found):
        raise ValueError("addresses host:port, for instance 10.0.0.5:8815,10.0.0.6:8815")
    return found


class OptionForm(Form):
    """A form whose errors name options: `option partitions = '0': ...`."""

    is_text = True

    def __init__(self, others: str, example: str, doing: str = "") -> None:
        """`others` describes options besides the listed ones, `example` a value of a required one, and
        `doing` their purpose."""
        self._others = others
        self._example = example
        self._doing = doing

    def path(self, where: str, key: str) -> str:
        return f"option {super().path(where, key)}"

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:
        if where:
            return f"option {super().unknown(where, key, known)}"
        hint = nearest(key, known).replace("'", "")
        accepted = ", ".join([*known, self._others])
        return f"option {key}: there is none of this name{self._doing}{hint} (accepted: {accepted})"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:
        shown = redacted(value) if isinstance(value, str) else value
        return f"option {where + '.' if where else ''}{key} = {shown!r}: {why}"

    def missing(self, where: str, key: str) -> str:  # noqa: ARG002
        return f"option {key}: missing; {self._example}"


def divided(given: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options without the prefix, and those with it, with the prefix removed."""
    own, prefixed = {}, {}
    for key, text in given.items():
        if key.lower().startswith(prefix):
            prefixed[key.lower().removeprefix(prefix)] = text
        else:
            own[key] = text
    return own, prefixed
