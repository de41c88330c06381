"""Names that a package offers, and imports from its modules on first use (PEP 562).

So importing one module of the package doesn't import all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
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
