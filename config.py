"""feed.toml → frozen options. Every stage declares its own options dataclass; this module fills it in.

Errors name the key in full, the accepted values, and the nearest known key.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import ConfigError

SOURCES = ("mysql", "mariadb", "tikv")
"""Accepted schemes of a source's URL."""

T = TypeVar("T")

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file; `${NAME}` in strings is replaced from the environment.

    Raises ConfigError when the file can't be read, isn't TOML, or names an unset variable.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    expanded: dict[str, Any] = _expand(tables, "")
    return expanded


def build(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build an options dataclass from a table of the file, found at `where` (for instance "sorter").

    Fields whose name ends in `_bytes` take a number or a string such as "64MiB". Raises ConfigError.
    """
    reject_unknown(table, keys(cls), where)
    values = {
        key: parse_bytes(value, f"{where}.{key}") if key.endswith("_bytes") else value
        for key, value in table.items()
    }
    try:
        return msgspec.convert(values, cls, dec_hook=_path)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at ")
        key = at.strip("`").removeprefix("$") or ""
        raise ConfigError(f"{where}{key}: {message[:1].lower()}{message[1:]}") from None


def keys(cls: type) -> list[str]:
    """Return the keys that an options dataclass accepts."""
    return [field.name for field in fields(cls)]


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError


def reject_unknown(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise ConfigError for the first key that isn't known, naming the nearest that is."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            name = f"{where}.{key}" if where else key
            raise ConfigError(f"{name}: no such key{hint} (accepted: {', '.join(sorted(known))})")


def parse_bytes(value: object, where: str) -> int:
    """Parse a size in bytes: a number, or a string such as "64MiB". Raises ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and match[2] in _UNITS:
        return int(match[1]) * _UNITS[match[2]]
    raise ConfigError(
        f"{where}: {value!r} is not a size; write bytes as a number or with a unit "
        f'({", ".join(unit for unit in _UNITS if unit)}), for instance "64MiB"'
    )


def _expand(value: Any, where: str) -> Any:
    match value:
        case str():
            return _VARIABLE.sub(lambda found: _variable(found[1], where), value)
        case dict():
            return {key: _expand(item, f"{where}.{key}" if where else key) for key, item in value.items()}
        case list():
            return [_expand(item, where) for item in value]
    return value


def _variable(name: str, where: str) -> str:
    if name not in os.environ:
        raise ConfigError(f"{where}: the environment has no variable {name}")
    return os.environ[name]
