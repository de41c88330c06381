"""Builds frozen options from tables and texts; every stage declares its own options dataclass.

Errors name the key in full, the accepted values, and the nearest known key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from ..errors import ConfigError
from .form import FILE, Form, Text

T = TypeVar("T")

_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"\s*+(\d++)\s*+([A-Za-z]*+)\s*+")


def build(
    cls: type[T],
    given: Mapping[str, Any],
    where: str,
    form: Form = FILE,
    known: Mapping[str, Any] | None = None,
) -> T:
    """Build an options dataclass from options found at `where` (for instance "sorter").

    `known` contains values of fields that needn't be given. Fields whose name ends in `_bytes` accept a
    number or a string such as "64MiB"; fields annotated with Text parse their text. Raises ConfigError,
    worded by `form`.
    """
    names = option_fields(cls)
    folded = {name.lower(): name for name in names}
    values = dict(known or {})
    for key, value in given.items():
        name = folded.get(key.lower(), key) if form.is_text else key
        if name not in names:
            raise ConfigError(form.unknown(where, key, names))
        values[names[name]] = _value(cls, name, value, where, form)
    for name, field_name in names.items():
        if field_name in _required(cls) - values.keys():
            raise ConfigError(form.missing(where, name))
    return cls(**values)


def option_fields(cls: type) -> dict[str, str]:
    """Return the fields of an options dataclass by the names of their options, in order.

    If some fields are annotated with Text, the others aren't options.
    """
    texts = {name: text for name in keys(cls) if (text := _text(_hints(cls)[name]))}
    return {text.name: name for name, text in texts.items()} or {name: name for name in keys(cls)}


def keys(cls: type) -> list[str]:
    """Return the names of the fields of an options dataclass."""
    return [field.name for field in fields(cls)]


def reject_unknown(table: Mapping[str, Any], known: Collection[str], where: str, form: Form = FILE) -> None:
    """Raise ConfigError for the first key that isn't known, naming the nearest that is."""
    for key in table:
        if key not in known:
            raise ConfigError(form.unknown(where, key, known))


def parse_bytes(value: object, where: str) -> int:
    """Parse a size in bytes: a number, or a string such as "64MiB". Raises ConfigError."""
    try:
        return _bytes(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _value(cls: type, name: str, value: Any, where: str, form: Form) -> Any:
    field_name = option_fields(cls)[name]
    hint = _hints(cls)[field_name]
    text = _text(hint)
    try:
        if text is not None and isinstance(value, str):
            return text.parse(value)
        if field_name.endswith("_bytes"):
            value = _bytes(value)
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, get_args(hint)))}")
        if get_origin(hint) is dict and form.is_text and isinstance(value, str):
            value = _json(value)
        return msgspec.convert(value, hint, strict=not form.is_text, dec_hook=_path)
    except msgspec.ValidationError as error:
        why, _, at = str(error).partition(" - at ")
        inside = at.strip("`").removeprefix("$")
        raise ConfigError(form.wrong(where, name + inside, value, _lower(why))) from None
    except ValueError as error:
        raise ConfigError(form.wrong(where, name, value, _lower(str(error)))) from None


def _lower(why: str) -> str:
    """Return a sentence as it continues after a colon, in lower case; "TSO" stays."""
    return why if why[1:2].isupper() else why[:1].lower() + why[1:]


@lru_cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _text(hint: Any) -> Text | None:
    return next((note for note in get_args(hint) if isinstance(note, Text)), None)


def _required(cls: type) -> set[str]:
    return {one.name for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING}


def _bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and match[2] in _UNITS:
        return int(match[1]) * _UNITS[match[2]]
    units = ", ".join(unit for unit in _UNITS if unit)
    raise ValueError(
        f'{value!r} is not a size: give bytes with or without a unit ({units}), for instance "64MiB"'
    )


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise ValueError("give a JSON object") from None


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError
