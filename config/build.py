"""Builds frozen options from tables and texts; every stage declares its own options dataclass.

A field may be a section, `Inner | None`, or sections that come more than once, `tuple[Inner, ...]`. A class
checks its fields together in `__post_init__`: its ConfigError begins with the field that is wrong, and gets
the section's name. Errors name the key in full, the accepted values, and the nearest known key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from ..errors import ConfigError
from .declaration import Option, alternatives, declaration, section_type, sections_type
from .form import FILE, Form
from .values import size_of, value_of

T = TypeVar("T")


def build(
    cls: type[T],
    entries: Mapping[str, object],
    where: str,
    form: Form = FILE,
    known: Mapping[str, object] | None = None,
) -> T:
    """Build an options dataclass from options found at `where` (for instance "sorter").

    `known` contains values of fields that needn't be given. Fields whose name ends in `_bytes` accept a
    number or a string such as "64MiB". The text of a list has commas between its items, that of a table is
    JSON. Raises ConfigError, worded by `form`.
    """
    declared = declaration(cls)
    names = declared.options
    folded = {name.lower(): name for name in names}
    values = dict(known or {})
    rest: dict[str, object] = {}
    for key, value in entries.items():
        option = names.get(folded.get(key.lower(), key) if form.is_text else key)
        if option is not None:
            values[option.field] = _value(option, value, where, form)
        elif declared.rest:
            rest[key] = value
        else:
            raise ConfigError(form.unknown(where, key, names))
    for option in names.values():
        if option.is_required and option.field not in values:
            raise ConfigError(form.missing(where, option.name))
    if declared.rest:
        values[declared.rest] = rest
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(form.conflict(where, str(error), names)) from None


def checked(options: T, where: str) -> T:
    """Return options that a program made, as they are in a file. Raises ConfigError."""
    values = {name: getattr(options, name) for name in keys(type(options))}
    written = [one for one in declaration(type(options)).options.values() if one.given.parse is None]
    entries = {one.name: values[one.field] for one in written if values[one.field] is not None}
    return build(type(options), entries, where, known=values)


def keys(cls: type) -> list[str]:
    """Return the names of the fields of an options dataclass."""
    return [field.name for field in fields(cls)]


def reject_unknown(
    table: Mapping[str, object], known: Collection[str], where: str, form: Form = FILE
) -> None:
    """Raise ConfigError for the first key that isn't known, naming the nearest that is."""
    for key in table:
        if key not in known:
            raise ConfigError(form.unknown(where, key, known))


def _value(option: Option, value: object, where: str, form: Form) -> object:
    path, parse = form.path(where, option.name), option.given.parse
    try:
        written = _written(option, value, path, is_text=form.is_text)
        return written if parse is None else parse(written, path)
    except msgspec.ValidationError as error:
        why, _, path_inside = str(error).partition(" - at ")
        inside = path_inside.strip("`").removeprefix("$")
        raise ConfigError(form.wrong(where, option.name + inside, value, _lower(why))) from None
    except ValueError as error:
        raise ConfigError(form.wrong(where, option.name, value, _lower(str(error)))) from None


def _written(option: Option, value: Any, path: str, *, is_text: bool) -> Any:
    others = []
    for kind in alternatives(option.kind):
        section, sections = section_type(kind), sections_type(kind)
        if section is not None and isinstance(value, section):
            return checked(value, path)
        if section is not None and isinstance(value, Mapping):
            return build(section, value, path, option.given.form)
        if sections is not None and _is_list(value):
            return _sections(sections, value, path, option.given.form)
        if section is None and sections is None:
            others.append(kind)
    if len(others) == len(alternatives(option.kind)):
        size = size_of(value) if option.field.endswith("_bytes") else value
        return value_of(option.kind, size, is_text=is_text)
    if any(isinstance(value, kind) for kind in others):
        return value
    raise ConfigError(f"{path}: expected {_forms(option.kind, path)}")


def _forms(kind: object, path: str) -> str:
    """Return the accepted forms of an option that may be a section."""
    header = re.sub(r" [^.:]*[:.]? ?", ".", path).strip(".")
    forms = [
        "a table" if section_type(one) else f"[[{header}]] tables" if sections_type(one) else "a string"
        for one in alternatives(kind)
        if one is not type(None)
    ]
    return ", or ".join(forms)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(section, Mapping) for section in value)


def _sections(cls: type[T], sections: Sequence[Mapping[str, object]], path: str, form: Form) -> tuple[T, ...]:
    """Build sections that come more than once; errors name each by its name, or by its number."""
    name = declaration(cls).options.get("name")
    built = []
    for number, section in enumerate(sections, 1):
        label: object = number
        if name is not None:
            if name.given.numbered:
                section = {"name": name.given.numbered.format(number), **section}
            label = section.get("name", number)
        built.append(build(cls, section, f"{path} {label}", form))
    return tuple(built)


def _lower(why: str) -> str:
    """Return a sentence as it continues after a colon, in lower case and in TOML's words; "TSO" stays."""
    why = why.replace(" | null`", "`").replace("`array`", "a list").replace("`object`", "a table")
    return why if why[1:2].isupper() else why[:1].lower() + why[1:]
