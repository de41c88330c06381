"""Values of options, from what a file has, or from text."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

import msgspec

from ..errors import ConfigError
from .declaration import alternatives, bare

_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TIME: Final = re.compile(r"\s*+(\d++(?:\.\d++)?+)\s*+([a-z])\s*+")
_SIZE: Final = re.compile(r"\s*+(\d++)\s*+([A-Za-z]*+)\s*+")


def value_of(kind: object, written: object, *, is_text: bool) -> object:
    """Return the value of a type. Raises ValueError that names the accepted values, and msgspec's
    ValidationError."""
    if is_text and isinstance(written, str):
        written = _from_text(bare(kind), written)
    _check_choice(kind, written)
    return msgspec.convert(written, kind, strict=not is_text, dec_hook=_other)


def parse_bytes(value: object, where: str) -> int:
    """Parse a size in bytes: a number, or a string such as "64MiB". Raises ConfigError."""
    try:
        return size_of(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def size_of(value: object) -> int:
    """Return a size in bytes. Raises ValueError that names the accepted values."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and match[2] in _UNITS:
        return int(match[1]) * _UNITS[match[2]]
    units = ", ".join(unit for unit in _UNITS if unit)
    raise ValueError(
        f'{value!r} is not a size: give bytes with or without a unit ({units}), for instance "64MiB"'
    )


def seconds_of(value: object) -> float:
    """Return a time in seconds. Raises ValueError that names the accepted values."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf:
        return float(value)
    if isinstance(value, str) and (match := _TIME.fullmatch(value)) and match[2] in _SECONDS:
        return seconds_of(float(match[1]) * _SECONDS[match[2]])
    units = ", ".join(_SECONDS)
    raise ValueError(
        f'{value!r} is not a time: give seconds, or a number with a unit ({units}), for instance "12h"'
    )


def _from_text(kind: object, text: str) -> object:
    match get_origin(kind) or kind, get_args(kind):
        case origin, (item, end) if origin is tuple and end is ...:
            return tuple(_from_text(item, part) for part in map(str.strip, text.split(",")) if part)
        case origin, _ if origin is dict:
            try:
                return msgspec.json.decode(text)
            except msgspec.DecodeError:
                raise ValueError("give a JSON object") from None
        case origin, accepted if origin is Literal:
            return next((one for one in accepted if str(one).lower() == text.lower()), text)
        case origin, _ if origin is bool and text.lower() not in ("true", "false"):
            raise ValueError("accepted: true, false")
    for number, name in ((int, "a whole number"), (float, "a number")):
        if number in map(bare, alternatives(kind)):
            try:
                number(text)
            except ValueError:
                raise ValueError(f"accepted: {name}") from None
    return text


def _check_choice(kind: object, value: object) -> None:
    """Raise ValueError for a value that is none of a literal type's, or has an item that is none."""
    match get_origin(kind), get_args(kind):
        case origin, accepted if origin is Literal:
            if value not in accepted:
                raise ValueError(f"{value!r} is none of {', '.join(map(repr, accepted))}")
        case origin, (item, end) if origin is tuple and end is ... and get_origin(item) is Literal:
            if not isinstance(value, list | tuple):
                raise ValueError(f"expected a list of {', '.join(map(repr, get_args(item)))}, not {value!r}")
            for one in value:
                _check_choice(item, one)


def _other(kind: type, value: object) -> object:
    if isinstance(value, kind):
        return value
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError
