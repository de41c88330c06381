"""JSON Schemas of options dataclasses, for editors and for bodies of requests."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from .build import option_fields

_SIZE: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*\d+\s*([KMGT]iB|B)?\s*$"},
    ]
}


def section_schema(cls: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the schema of a section whose options are the fields of a dataclass, except `without`.

    Each property has the field's docstring as its description. Sizes (`_bytes`) may have a unit.
    """
    texts = _docstrings(cls)
    hints = get_type_hints(cls, include_extras=True)
    defaults = {one.name: one for one in fields(cls)}
    properties: dict[str, Any] = {}
    required = []
    for name, field_name in option_fields(cls).items():
        if field_name in without:
            continue
        found: dict[str, Any] = (
            dict(_SIZE) if field_name.endswith("_bytes") else _type_schema(hints[field_name])
        )
        if text := texts.get(field_name):
            found["description"] = text
        one = defaults[field_name]
        if one.default is not MISSING:
            if isinstance(one.default, (bool, int, float, str)):
                found["default"] = one.default
        elif one.default_factory is MISSING:
            required.append(name)
        properties[name] = found
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if text := inspect.getdoc(cls):
        schema["description"] = text
    if required:
        schema["required"] = required
    return schema


def _type_schema(hint: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.schema(hint, schema_hook=_other)
    return found


def _other(kind: type) -> dict[str, Any]:
    return {"type": "string"} if issubclass(kind, Path) else {}


def _docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings after the fields of a class and of those that it is derived from."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(one))
        except (OSError, TypeError):  # made by a program
            continue
        (node,) = ast.parse(source).body
        assert isinstance(node, ast.ClassDef)
        for field, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = inspect.cleandoc(text.value.value)
    return found
