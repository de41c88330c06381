"""JSON Schemas of options dataclasses, for editors and for bodies of requests."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from .declaration import Option, Variant, alternatives, declaration, section_type, sections_type

_SIZE: Final[dict[str, object]] = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*\d+\s*([KMGT]iB|B)?\s*$"},
    ]
}


def document_schema(cls: type, title: str) -> dict[str, object]:
    """Return the schema of a file whose tables are the fields of an options dataclass."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **section_schema(cls),
    }


def section_schema(cls: type) -> dict[str, object]:
    """Return the schema of a section whose options are the fields of a dataclass.

    Each property has the field's docstring as its description. Sizes (`_bytes`) may have a unit. A section
    whose URL names its kind is one of the kinds' schemas.
    """
    declared = declaration(cls)
    own = _object(cls)
    if not declared.rest:
        return own
    return {"anyOf": [_variant(own, variant) for variant in declared.variants()]}


def _object(cls: type, without: Collection[str] = ()) -> dict[str, Any]:
    texts = docstrings(cls)
    properties: dict[str, object] = {}
    required = []
    for name, option in declaration(cls).options.items():
        if option.field in without:
            continue
        schema = option_schema(option)
        if described := texts.get(option.field):
            schema["description"] = described
        if isinstance(option.default, (bool, int, float, str)):
            schema["default"] = option.default
        if option.is_required:
            required.append(name)
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if described := inspect.getdoc(cls):
        schema["description"] = described
    if required:
        schema["required"] = required
    return schema


def _variant(common: dict[str, Any], variant: Variant) -> dict[str, Any]:
    """Return the schema of a section's kind, with the keys common to all kinds."""
    own = _object(variant.options, variant.without)
    url: dict[str, object] = {**common["properties"]["url"], "pattern": _urls(variant.schemes)}
    if variant.examples:
        url["examples"] = [*variant.examples]
    own["properties"] = {**common["properties"], **own["properties"], "url": url}
    own["required"] = sorted({*common.get("required", ()), *own.get("required", ())})
    return own


def _urls(schemes: tuple[str, ...]) -> str:
    return rf"^(\$\{{|({'|'.join(schemes)})(\+\w+)?:)"


def option_schema(option: Option) -> dict[str, object]:
    """Return the schema of what is written for an option."""
    if option.field.endswith("_bytes"):
        return dict(_SIZE)
    kinds = [kind for kind in alternatives(option.kind) if kind is not type(None)]
    if not any(section_type(kind) or sections_type(kind) for kind in kinds):
        return _type_schema(option.kind)
    schemas = [_section_schema(kind) for kind in kinds]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _section_schema(kind: object) -> dict[str, object]:
    if (one := section_type(kind)) is not None:
        return section_schema(one)
    if (one := sections_type(kind)) is not None:
        return {"type": "array", "items": section_schema(one)}
    return _type_schema(kind)


def _type_schema(hint: object) -> dict[str, object]:
    if hint is object:
        return {}  # a section that other commands declare
    schema: dict[str, object] = msgspec.json.schema(hint, schema_hook=_other)
    return schema


def _other(kind: type) -> dict[str, object]:
    return {"type": "string"} if issubclass(kind, Path) else {}


@cache
def docstrings(cls: type) -> Mapping[str, str]:
    """Return the docstrings after the fields of a class and of those that it is derived from."""
    texts: dict[str, str] = {}
    for one in reversed(cls.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(one))
        except (OSError, TypeError):  # made by a program
            continue
        (node,) = ast.parse(source).body
        assert isinstance(node, ast.ClassDef)
        for field, described in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(described, ast.Expr)
                and isinstance(described.value, ast.Constant)
                and isinstance(described.value.value, str)
            ):
                texts[field.target.id] = inspect.cleandoc(described.value.value)
    return MappingProxyType(texts)
