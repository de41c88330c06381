"""Declarations of options: the key, the form and the default of each field of a dataclass.

A field is an option by its name and type. Annotations say more: `Given` if a value is written in another form
or by another name, `Rest` for the keys of a kind that the section's URL names, `INTERNAL` if it is no option.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from .form import FILE, Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Annotates a field that is written in another form, or by another name, than it has in the program."""

    name: str = ""
    """Key as users write it; empty: the field's name."""
    kind: Any = None
    """Type of what is written: its sections are built, its bounds checked; None: the field's own type."""
    parse: Callable[[Any, str], Any] | None = None
    """Return the field's value for what is written and the full name of the key. Raises ValueError that names
    the accepted values, or ConfigError that names the key too."""
    numbered: str = ""
    """For the name of a section that comes more than once: format of the default, by the section's number."""
    form: Form = FILE
    """Wording of errors in sections."""


def text(parse: Callable[[str], object], name: str = "") -> Given:
    """Return the annotation of a field that is given as text: `Annotated[int, text(whole)]`.

    `parse` raises ValueError that names the accepted values.
    """
    return Given(name=name, kind=str, parse=lambda value, _: parse(value))


class Variant(NamedTuple):
    """One kind of a section, by the scheme of its URL."""

    schemes: tuple[str, ...]
    options: type
    """Options dataclass with the keys of this kind."""
    examples: tuple[str, ...] = ()
    without: Collection[str] = ()
    """Fields that only the URL gives."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Annotates a `Mapping` of the keys that no other field has: the options of the kind that a URL names."""

    variants: Callable[[], Iterable[Variant]]


@dataclass(frozen=True, slots=True)
class _Internal:
    pass


class Hyphenated:
    """Base of an options dataclass whose keys have hyphens for the underscores of its fields."""

    __slots__ = ()


class CamelCase:
    """Base of an options dataclass with keys such as maxRows for max_rows."""

    __slots__ = ()


def camel_case(field: str) -> str:
    """Return a field's name as the key of a CamelCase class."""
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def key_of(cls: type, field: str) -> str:
    """Return the key of a field as users write it."""
    return next(option.name for option in declaration(cls).options.values() if option.field == field)


INTERNAL: Final = _Internal()
"""Annotates a field that isn't an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key of a section."""

    name: str
    """Key as users write it."""
    field: str
    kind: Any
    """Type of what is written."""
    given: Given
    default: Any
    """MISSING if there is none, or if it is a new object each time."""
    is_required: bool
    is_hidden: bool = False
    """True for a secret, or a value that may have one in it: its field has `repr=False`."""


class Declaration(NamedTuple):
    options: Mapping[str, Option]
    """By key, in the order of the fields."""
    rest: str = ""
    """Field of the other keys; empty: there are none."""
    variants: Callable[[], Iterable[Variant]] = tuple


def declaration(cls: type) -> Declaration:
    """Return what an options dataclass declares."""
    return _declaration(cls)


@lru_cache
def _declaration(cls: type) -> Declaration:
    hints = get_type_hints(cls, include_extras=True)
    options: dict[str, Option] = {}
    rest: str = ""
    variants: Callable[[], Iterable[Variant]] = tuple
    for field in fields(cls):
        hint = hints[field.name]
        name = field.name
        if issubclass(cls, Hyphenated):
            name = name.replace("_", "-")
        elif issubclass(cls, CamelCase):
            name = camel_case(name)
        notes = [note for note in get_args(hint)[1:] if isinstance(note, Given | Rest | _Internal)]
        match notes:
            case [Rest() as note]:
                rest, variants = field.name, note.variants
            case [_Internal()]:
                pass
            case [Given() as given]:
                inner, *others = (one for one in get_args(hint) if one is not given)
                option = _option(name, field, Annotated[inner, *others] if others else inner, given)
                options[option.name] = option
            case _:
                options[name] = _option(name, field, hint, Given())
    return Declaration(options, rest, variants)


def _option(name: str, field: Field[object], hint: object, given: Given) -> Option:
    return Option(
        name=given.name or name,
        field=field.name,
        kind=hint if given.kind is None else given.kind,
        given=given,
        default=field.default,
        is_required=field.default is MISSING and field.default_factory is MISSING and not given.numbered,
        is_hidden=not field.repr,
    )


def bare(kind: object) -> object:
    """Return a type without its annotations."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def section_type(kind: object) -> type | None:
    """Return the options dataclass if the type is one; else None."""
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def sections_type(kind: object) -> type | None:
    """Return the options dataclass if the type is a tuple of any number of them; else None."""
    match get_origin(kind), get_args(kind):
        case origin, (item, end) if origin is tuple and end is ...:
            return section_type(item)
    return None
