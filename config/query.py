"""Options in the query of a URL."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from ..errors import ConfigError

T = TypeVar("T")


def with_query(options: T, query: str, without: Collection[str] = ()) -> T:
    """Return an options dataclass with those in the query of a URL, except the fields `without`.

    Raises ConfigError, also for an option that is given as both.
    """
    defaults = {
        one.name: None if one.default is MISSING else one.default
        for one in fields(options)  # type: ignore[arg-type]
        if one.name not in without
    }
    given: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True, separator="&"):
        if name not in defaults:
            accepted = ", ".join(defaults) or "none"
            raise ConfigError(f"unknown option {name!r} in the URL; accepted: {accepted}")
        given[name] = _value(name, text, defaults[name])
        if getattr(options, name) not in (defaults[name], given[name]):
            raise ConfigError(f"{name} is given twice: in the URL, and as an option")
    _check_choices(type(options), given)
    return replace(options, **given)  # type: ignore[type-var]


def _value(name: str, text: str, default: Any) -> Any:
    if isinstance(default, tuple):
        return tuple(text.split(","))
    try:
        return msgspec.convert(text, type(default), strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name} = {text!r} in the URL: {error}") from error


def _check_choices(options: type, given: dict[str, Any]) -> None:
    """Raise ConfigError for a text that is none of its option's choices."""
    hints = get_type_hints(options)
    for name, value in given.items():
        if get_origin(hints[name]) is Literal and value not in get_args(hints[name]):
            accepted = ", ".join(map(repr, get_args(hints[name])))
            raise ConfigError(f"{name} = {value!r} in the URL is none of {accepted}")
