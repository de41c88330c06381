"""Reads a feed.toml."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from ..errors import ConfigError

_VARIABLE: Final = re.compile(r"(\$)?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?")


def read(path: Path, only: Collection[str] | None = None) -> dict[str, Any]:
    """Read the tables of a TOML file; `${NAME}` in strings is replaced from the environment, `$${` is `${`.

    With `only`, the result has no other keys, and their variables needn't be set.

    Raises ConfigError if the file can't be read or isn't TOML, or for an unset or unclosed variable.
    """
    tables = read_as_written(path)
    if only is not None:
        tables = {key: value for key, value in tables.items() if key in only}
    return expand(tables)


def read_as_written(path: Path) -> dict[str, Any]:
    """Read the tables of a TOML file, variables of the environment by their names.

    Raises ConfigError if the file can't be read or isn't TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


def expand(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Replace variables of the environment as `read` does. Raises ConfigError."""
    expanded: dict[str, Any] = _expand(dict(tables), "")
    return expanded


def _expand(value: Any, where: str) -> Any:
    match value:
        case str():
            return _VARIABLE.sub(lambda match: _replaced(match, where), value)
        case dict():
            return {key: _expand(item, f"{where}.{key}" if where else key) for key, item in value.items()}
        case list():
            return [_expand(item, where) for item in value]
    return value


def _replaced(match: re.Match[str], where: str) -> str:
    if match[1]:
        return match[0][1:]
    name = match[2]
    if name is None:  # what follows may be a password, and isn't shown
        raise ConfigError(
            f"{where}: ${{ begins a variable of the environment, as ${{NAME}}, with a closing brace; "
            "$${ is ${ itself"
        )
    if name not in os.environ:
        raise ConfigError(f"{where}: the environment has no variable {name}")
    return os.environ[name]
