"""Names that are imported on first use: those that a package offers (PEP 562), and single functions.

So importing one module of the package doesn't import all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


class Names:
    """Names of `package`, each with its module, such as `.actor`."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package = package
        self._homes = homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def get(self, name: str) -> Any:
        """Return the object of that name: the package's `__getattr__`. Raises AttributeError."""
        if name not in self._homes:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        value = getattr(import_module(self._homes[name], self._package), name)
        setattr(sys.modules[self._package], name, value)
        return value


def later(package: str, place: str) -> Callable[..., Any]:
    """Return a function that imports another one, such as `.survey:survey`, at its first call."""
    module, _, name = place.partition(":")

    def call(*arguments: object) -> Any:
        return getattr(import_module(module, package), name)(*arguments)

    return call
