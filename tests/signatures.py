"""Public names as they are declared: what docs/reference/api.md shows of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, get_args

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

WIDTH = 100


def declaration(name: str, public: Any) -> str:
    """Return the declaration of a function, a class with its public members, or an alias."""
    if isinstance(public, type):
        return "\n".join(_class(public))
    if isinstance(public, UnionType):
        return f"{name} = {' | '.join(member.__name__ for member in get_args(public))}"
    return _function(name, public)


def _class(public: type) -> Iterator[str]:
    bases = [base.__name__ for base in public.__bases__ if issubclass(base, Exception)]
    yield f"class {public.__name__}" + (f"({', '.join(bases)})" if bases else "")
    classes = [*(base for base in reversed(public.__mro__[1:]) if _is_shown(base)), public]
    for name, annotation in (pair for one in classes for pair in inspect.get_annotations(one).items()):
        if not name.startswith("_"):
            yield f"    {name}: {_plain(annotation)}{_default(public, name)}"
    for name, member in {name: member for one in classes for name, member in vars(one).items()}.items():
        if isinstance(member, property) and not name.startswith("_"):
            yield f"    {name}: {_plain(member.fget.__annotations__['return'])}  # read-only"
        elif inspect.isfunction(member) and not name.startswith("_"):
            yield "    " + _function(name, member).replace("\n", "\n    ")


def _is_shown(base: type) -> bool:
    """Return True if the members of a base are shown with the class: options, and what handles share."""
    return dataclasses.is_dataclass(base) or base.__name__ == "FeedHandle"


def _default(public: type, name: str) -> str:
    if issubclass(public, Struct):
        field = next(field for field in fields(public) if field.name == name)
        if field.default_factory is not NODEFAULT:
            return f" = {field.default_factory()!r}"
        return "" if field.default is NODEFAULT else f" = {field.default!r}"
    if dataclasses.is_dataclass(public):
        default = next(field.default for field in dataclasses.fields(public) if field.name == name)
        return "" if default is dataclasses.MISSING else f" = {default!r}"
    return ""


def _function(name: str, public: Callable[..., Any]) -> str:
    signature = inspect.signature(public)
    parts, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        text = parameter.name
        if parameter.annotation is not inspect.Parameter.empty:
            text += f": {_plain(parameter.annotation)}"
        if parameter.default is not inspect.Parameter.empty:
            text += f" = {parameter.default!r}"
        parts.append(text)
    start = "async def" if inspect.iscoroutinefunction(public) else "def"
    result = f" -> {_plain(signature.return_annotation)}"
    line = f"{start} {name}({', '.join(parts)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{start} {name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def _plain(annotation: str) -> str:
    """An annotation without the limits that are checked when options are read."""
    return re.sub(r"Annotated\[(.+?), Meta\([^)]*\)\]", r"\1", annotation)
