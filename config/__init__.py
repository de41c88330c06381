"""Options, from a feed.toml or from text, as frozen dataclasses; preflight findings; registries of kinds."""

from .build import build, checked, keys, reject_unknown
from .declaration import (
    INTERNAL,
    CamelCase,
    Given,
    Hyphenated,
    Rest,
    Variant,
    camel_case,
    declaration,
    key_of,
    text,
)
from .file import expand, read, read_as_written
from .finding import Finding
from .form import FILE, Form, NameText, name
from .query import from_query, with_query
from .registry import Registry
from .values import parse_bytes, seconds_of

__all__ = [
    "FILE",
    "INTERNAL",
    "CamelCase",
    "Finding",
    "Form",
    "Given",
    "Hyphenated",
    "NameText",
    "Registry",
    "Rest",
    "Variant",
    "build",
    "camel_case",
    "checked",
    "declaration",
    "expand",
    "from_query",
    "key_of",
    "keys",
    "name",
    "parse_bytes",
    "read",
    "read_as_written",
    "reject_unknown",
    "seconds_of",
    "text",
    "with_query",
]
