"""Code with a planted bug, imported in place of the real one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from .mutants import Mutant


def plant(mutant: Mutant) -> None:
    """Have this process import the mutant's module with the bug. Raises ValueError if the module was
    imported already, or if the code before the bug isn't in it exactly once."""
    if mutant.module in sys.modules:
        raise ValueError(f"mutant {mutant.name}: {mutant.module} was imported before")
    sys.meta_path.insert(0, _Finder(mutant))


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def path_stats(self, _path: Any) -> Any:
        raise OSError("the compiled file has no bug")

    def get_data(self, path: Any) -> bytes:
        text = super().get_data(path).decode()
        return self._mutant.plant(text).encode()
