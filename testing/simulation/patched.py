"""Code with a planted bug, imported in place of the real one."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from .mutants.mutant import Mutant, Patch


def plant(mutant: Mutant) -> None:
    """Have this process import the mutant's modules with the bug.

    Raises ValueError if one was imported already; an import raises it if the code before the bug isn't in it
    exactly once.
    """
    by_module: dict[str, list[Patch]] = defaultdict(list)
    for patch in mutant.patches:
        if patch.module in sys.modules:
            raise ValueError(f"mutant {mutant.name}: {patch.module} was imported before")
        by_module[patch.module].append(patch)
    sys.meta_path.insert(0, _Finder(by_module))


class _Finder(MetaPathFinder):
    def __init__(self, patches: dict[str, list[Patch]]) -> None:
        self._patches = patches

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        patches = self._patches.get(fullname)
        if patches is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, patches)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, patches: Sequence[Patch]) -> None:
        super().__init__(name, path)
        self._patches = patches

    def path_stats(self, _path: Any) -> Any:
        raise OSError("the compiled file has no bug")

    def get_data(self, path: Any) -> bytes:
        text = super().get_data(path).decode()
        for patch in self._patches:
            text = patch.apply(text)
        return text.encode()
