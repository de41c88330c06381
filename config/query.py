"""Options in the query of a URL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from ..errors import ConfigError
from .build import build, keys, reject_unknown
from .declaration import declaration
from .form import Form

T = TypeVar("T")


QUERY: Final = Form(is_text=True, noun="option", after=" in the URL", shows_values=True)


def from_query(cls: type[T], query: Mapping[str, str]) -> T:
    """Return an options dataclass from the query of a URL. Raises ConfigError."""
    return build(cls, query, "", QUERY)


def with_query(options: T, query: str, without: Collection[str] = ()) -> T:
    """Return an options dataclass with those in the query of a URL, except the fields `without`.

    Raises ConfigError, also for an option that is given as both.
    """
    cls = type(options)
    query_options = dict(parse_qsl(query, keep_blank_values=True, separator="&"))
    declared = {name: one for name, one in declaration(cls).options.items() if one.field not in without}
    reject_unknown(query_options, declared, "", QUERY)
    result = build(cls, query_options, "", QUERY, {field: getattr(options, field) for field in keys(cls)})
    for name in query_options:
        one = declared[name]
        if getattr(options, one.field) not in (one.default, getattr(result, one.field)):
            raise ConfigError(f"{name} is given twice: in the URL, and as an option")
    return result
