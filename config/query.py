"""Options in the query of a URL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from ..errors import ConfigError
from .build import build, keys, reject_unknown
from .declaration import declaration
from .form import Form

T = TypeVar("T")


class _QueryForm(Form):
    is_text = True

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:  # noqa: ARG002
        return f"unknown option {key!r} in the URL; accepted: {', '.join(known) or 'none'}"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:  # noqa: ARG002
        return f"{key} = {value!r} in the URL: {why}"


def from_query(cls: type[T], query: Mapping[str, str]) -> T:
    """Return an options dataclass from the query of a URL. Raises ConfigError."""
    return build(cls, query, "", _QueryForm())


def with_query(options: T, query: str, without: Collection[str] = ()) -> T:
    """Return an options dataclass with those in the query of a URL, except the fields `without`.

    Raises ConfigError, also for an option that is given as both.
    """
    cls, form = type(options), _QueryForm()
    query_options = dict(parse_qsl(query, keep_blank_values=True, separator="&"))
    declared = {name: one for name, one in declaration(cls).options.items() if one.field not in without}
    reject_unknown(query_options, declared, "", form)
    result = build(cls, query_options, "", form, {field: getattr(options, field) for field in keys(cls)})
    for name in query_options:
        one = declared[name]
        if getattr(options, one.field) not in (one.default, getattr(result, one.field)):
            raise ConfigError(f"{name} is given twice: in the URL, and as an option")
    return result
