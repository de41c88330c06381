"""The functions that open the sides, as registry entries name them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import ConfigError


def opener(path: str, whom: str) -> Callable[..., Any]:
    """Return the function "module:function". Raises ConfigError, which names `whom`, if there is none."""
    if not path:
        raise ConfigError(f"{whom} can't be compared")
    module, _, name = path.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError as error:
        raise ConfigError(f"{whom} needs a package that isn't installed: {error}") from error
    return found
