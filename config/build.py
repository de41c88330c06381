"""Builds frozen options from tables and texts; every stage declares its own options dataclass.

A field may be a section, `Inner | None`, or sections that come more than once, `tuple[Inner, ...]`. A class
checks its fields together in `__post_init__`: its ConfigError begins with the field that is wrong, and gets
the section's name. Errors name the key in full, the accepted values, and the nearest known key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from ..errors import ConfigError
from .declaration import Option, alternatives, bare, declaration, section_type, sections_type
from .form import FILE, Form

T = TypeVar("T")

_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"\s*+(\d++)\s*+([A-Za-z]*+)\s*+")


def build(
    cls: type[T],
    given: Mapping[str, Any],
    where: str,
    form: Form = FILE,
    known: Mapping[str, Any] | None = None,
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
    rest: dict[str, Any] = {}
    for key, value in given.items():
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
    written = [one for one in declaration(type(options)).options.values() if one.parse is None]
    given = {one.name: values[one.field] for one in written if values[one.field] is not None}
    return build(type(options), given, where, known=values)


def keys(cls: type) -> list[str]:
    """Return the names of the fields of an options dataclass."""
    return [field.name for field in fields(cls)]


def reject_unknown(table: Mapping[str, Any], known: Collection[str], where: str, form: Form = FILE) -> None:
    """Raise ConfigError for the first key that isn't known, naming the nearest that is."""
    for key in table:
        if key not in known:
            raise ConfigError(form.unknown(where, key, known))


def parse_bytes(value: object, where: str) -> int:
    """Parse a size in bytes: a number, or a string such as "64MiB". Raises ConfigError."""
    try:
        return _bytes(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _value(option: Option, value: Any, where: str, form: Form) -> Any:
    try:
        written = _written(option, value, where, form)
        return written if option.parse is None else option.parse(written, form.path(where, option.name))
    except msgspec.ValidationError as error:
        why, _, at = str(error).partition(" - at ")
        inside = at.strip("`").removeprefix("$")
        raise ConfigError(form.wrong(where, option.name + inside, value, _lower(why))) from None
    except ValueError as error:
        raise ConfigError(form.wrong(where, option.name, value, _lower(str(error)))) from None


def _written(option: Option, value: Any, where: str, form: Form) -> Any:
    kinds = alternatives(option.kind)
    sections = [kind for kind in kinds if section_type(kind) or sections_type(kind)]
    if sections:
        for kind in kinds:
            if (one := section_type(kind)) is not None:
                if isinstance(value, one):
                    return checked(value, form.path(where, option.name))
                if isinstance(value, Mapping):
                    return build(one, value, form.path(where, option.name), option.form)
            elif (one := sections_type(kind)) is not None and _is_list(value):
                return _sections(one, value, form.path(where, option.name), option.form)
        return _plain(option, value, sections, form.path(where, option.name))
    if option.field.endswith("_bytes"):
        value = _bytes(value)
    if form.is_text and isinstance(value, str):
        value = _from_text(bare(option.kind), value)
    _check_choice(option.kind, value)
    return msgspec.convert(value, option.kind, strict=not form.is_text, dec_hook=_converted)


def _plain(option: Option, value: Any, sections: Sequence[Any], path: str) -> Any:
    """Return the value of an option that may be a section, and is none here."""
    for kind in alternatives(option.kind):
        if kind not in sections and isinstance(value, kind):
            return value
    header = re.sub(r" [^.:]*[:.]? ?", ".", path).strip(".")
    forms = [
        "a table" if section_type(kind) else f"[[{header}]] tables" if sections_type(kind) else "a string"
        for kind in alternatives(option.kind)
        if kind is not type(None)
    ]
    raise ConfigError(f"{path}: expected {', or '.join(dict.fromkeys(forms))}")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(section, Mapping) for section in value)


def _sections(cls: type[T], sections: Sequence[Mapping[str, Any]], path: str, form: Form) -> tuple[T, ...]:
    """Build sections that come more than once; errors name each by its name, or by its number."""
    name = declaration(cls).options.get("name")
    found = []
    for number, section in enumerate(sections, 1):
        label: object = number
        if name is not None:
            if name.numbered:
                section = {"name": name.numbered.format(number), **section}
            label = section.get("name", number)
        found.append(build(cls, section, f"{path} {label}", form))
    return tuple(found)


def _check_choice(kind: Any, value: Any) -> None:
    """Raise ValueError for a value that is none of a literal type's, or has an item that is none."""
    match get_origin(kind), get_args(kind):
        case origin, accepted if origin is Literal:
            if value not in accepted:
                raise ValueError(f"{value!r} is none of {', '.join(map(repr, accepted))}")
        case origin, (item, end) if origin is tuple and end is ... and get_origin(item) is Literal:
            if not isinstance(value, list | tuple):
                raise ValueError(f"expected a list of {', '.join(map(repr, get_args(item)))}, not {value!r}")
            for one in value:
                _check_choice(item, one)


def _lower(why: str) -> str:
    """Return a sentence as it continues after a colon, in lower case and in TOML's words; "TSO" stays."""
    why = why.replace("`array`", "a list").replace("`object`", "a table")
    return why if why[1:2].isupper() else why[:1].lower() + why[1:]


def _bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and match[2] in _UNITS:
        return int(match[1]) * _UNITS[match[2]]
    units = ", ".join(unit for unit in _UNITS if unit)
    raise ValueError(
        f'{value!r} is not a size: give bytes with or without a unit ({units}), for instance "64MiB"'
    )


def _from_text(kind: Any, text: str) -> object:
    """Return the value of a text. Raises ValueError that names the accepted values."""
    match get_origin(kind) or kind, get_args(kind):
        case origin, (item, end) if origin is tuple and end is ...:
            return tuple(_from_text(item, part) for part in map(str.strip, text.split(",")) if part)
        case origin, _ if origin is dict:
            try:
                return msgspec.json.decode(text)
            except msgspec.DecodeError:
                raise ValueError("give a JSON object") from None
        case origin, accepted if origin is Literal:
            return next((one for one in accepted if str(one).lower() == text.lower()), text)
        case origin, _ if origin is bool and text.lower() not in ("true", "false"):
            raise ValueError("accepted: true, false")
    return text


def _converted(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError
