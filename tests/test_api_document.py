"""docs/reference/api.md describes every public name as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import tidemill
from tidemill import errors

from .signatures import declaration

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
_ENTRY = re.compile(r"^### `(\w+)`\n+```python\n(.*?)```\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)


def test_the_document_shows_each_public_name_as_it_is_declared(rewrite):
    def shown(found: re.Match[str]) -> str:
        name, _, prose = found.groups()
        declared = declaration(name, getattr(tidemill, name))
        return f"### `{name}`\n\n```python\n{declared}\n```\n\n{prose.lstrip()}"

    written = DOCUMENT.read_text()
    if rewrite:
        DOCUMENT.write_text(written := _ENTRY.sub(shown, written))
    assert written == _ENTRY.sub(shown, written)
    names = [found[1] for found in _ENTRY.finditer(written)]
    assert sorted(names) == sorted(set(tidemill.__all__) - {"__version__"})


def test_each_name_is_described_with_its_members():
    for name, code, prose in _ENTRY.findall(DOCUMENT.read_text()):
        assert prose.strip(), name
        for method in re.findall(r"^    (?:async )?def (\w+)", code, re.MULTILINE):
            assert f"`{method}" in prose, f"{name}.{method}"


def test_every_error_and_every_public_name_can_be_imported():
    declared = {
        name
        for name, found in vars(errors).items()
        if inspect.isclass(found) and issubclass(found, errors.TidemillError)
    }
    assert declared <= set(tidemill.__all__)
    assert {name for name in tidemill.__all__ if not hasattr(tidemill, name)} == set()
    assert set(tidemill.__all__) <= set(dir(tidemill))
