"""The reference page of a file's options, from their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from .build import keys
from .declaration import Option, Variant, alternatives, bare, declaration, section_type, sections_type
from .schema import docstrings, option_schema


@dataclass(frozen=True, slots=True)
class _Section:
    path: str
    """Name of the section with those that it is in, such as "sink.rows"; empty: the file itself."""
    options: type
    described: str
    is_list: bool = False

    @property
    def header(self) -> str:
        return f"[[{self.path}]]" if self.is_list else f"[{self.path}]"


class PagePart(NamedTuple):
    """A part of the page after those of the file: options that are given elsewhere."""

    title: str
    described: str
    options: type
    kinds: Mapping[str, type] = {}
    """Options derived from `options`, by title."""


def reference(cls: type, title: str, parts: Iterable[PagePart] = ()) -> str:
    """Return the page in Markdown: a table for each section, and for each kind of a section."""
    lines = [f"# {title}", ""]
    known: set[object] = set()
    for section in _sections(_Section("", cls, "")):
        if section.path:
            lines += [f"## `{section.header}`", "", *_paragraph(section.described)]
        lines += _table(section.options)
        variants = declaration(section.options).variants
        for variant in () if variants in known else variants():
            lines += [f"### {_urls(variant)}", "", *_paragraph(_first_sentence(variant.options))]
            lines += _table(variant.options, variant.without)
            _, *inner = _sections(_Section(section.path, variant.options, ""))
            for one in inner:
                lines += [f"#### `{one.header}`", "", *_paragraph(one.described), *_table(one.options)]
        known.add(variants)
    for part in parts:
        lines += [f"## {part.title}", "", *_paragraph(part.described), *_table(part.options)]
        common = keys(part.options)
        for name, options in part.kinds.items():
            lines += [f"### {name}", "", *_table(options, common)]
    return "\n".join(lines).rstrip() + "\n"


def _sections(section: _Section) -> Iterator[_Section]:
    """Yield a section and those in it."""
    yield section
    texts = docstrings(section.options)
    options = declaration(section.options).options.values()
    for option in sorted(options, key=lambda option: not option.is_required):
        path = f"{section.path}.{option.name}" if section.path else option.name
        for kind in alternatives(option.kind):
            if (one := section_type(kind)) is not None:
                yield from _sections(_Section(path, one, texts.get(option.field, "")))
            elif (one := sections_type(kind)) is not None:
                yield from _sections(_Section(path, one, texts.get(option.field, ""), is_list=True))


def _paragraph(text: str) -> list[str]:
    return [" ".join(text.split()), ""] if text else []


def _first_sentence(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n\n")[0].partition(" Raises ")[0]


def _urls(variant: Variant) -> str:
    return ", ".join(f"`{scheme}:`" for scheme in variant.schemes)


def _table(cls: type, without: Collection[str] = ()) -> list[str]:
    texts = docstrings(cls)
    rows = [
        f"| `{option.name}` | {_type(option_schema(option))} | {_default(option)} | "
        f"{_cell(texts.get(option.field, ''))} |"
        for option in declaration(cls).options.values()
        if _is_written(option) and option.field not in without
    ]
    return ["| key | value | default | |", "|---|---|---|---|", *rows, ""] if rows else []


def _is_written(option: Option) -> bool:
    """Return True for an option that isn't only a section of its own."""
    kinds = [kind for kind in alternatives(option.kind) if kind is not type(None)]
    return not all(section_type(kind) or sections_type(kind) for kind in kinds)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _default(option: Option) -> str:
    if option.is_required:
        return "required"
    if bare(option.kind) is str and not isinstance(option.default, str):
        return ""  # made of text
    match option.default:
        case bool() as value:
            return str(value).lower()
        case int() as value if option.field.endswith("_bytes"):
            return _size(value)
        case int() | float() as value:
            return f"{value:,.12g}"
        case str() as value if value:
            return msgspec.json.encode(value).decode()
    return ""


def _size(value: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value and value % unit == 0:
            return f'"{value // unit}{name}"'
    return f"{value:,}"


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"enum": values}:
            return ", ".join(f'"{value}"' for value in values)
        case {"anyOf": [{"type": "integer"}, {"pattern": _}]}:
            return "size"
        case {"anyOf": kinds}:
            return " or ".join(dict.fromkeys(_type(kind) for kind in kinds if kind != {"type": "null"}))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object"}:
            return "table"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "integer" | "number" | "string" as kind}:
            return f"{'text' if kind == 'string' else kind}{_bounds(schema)}"
    return "any value"


def _bounds(schema: Mapping[str, object]) -> str:
    bounds = [
        f"{word} {schema[key]:,.12g}"
        for key, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if key in schema
    ]
    return "".join(f", {one}" for one in bounds)
