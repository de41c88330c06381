"""Packages whose names are imported on first use."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["actors", "client", "compare", "emulator", "mounter", "server", "sharding", "sink", "testing"]


def shown(path: Path) -> dict[str, str]:
    """The names that a package shows to type checkers, with their modules."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level and node.module != "lazy":
            home = "." * node.level + (node.module or "")
            found |= {alias.asname or alias.name: home for alias in node.names}
    return found


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_is_the_one_that_type_checkers_see(name: str) -> None:
    package = import_module(f"tidemill.{name}")
    wanted = shown(ROOT / name / "__init__.py")
    assert sorted(package.__all__) == sorted(wanted)
    for one, module in wanted.items():
        assert getattr(package, one) is getattr(import_module(module, package.__name__), one)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = package.Nothing


def test_only_these_packages_are_lazy() -> None:
    lazy = [path.parent.name for path in ROOT.glob("*/__init__.py") if "_NAMES" in path.read_text()]
    assert sorted(lazy) == PACKAGES
