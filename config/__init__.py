"""Options, from a feed.toml or from text, as frozen dataclasses; preflight findings; registries of kinds."""

from .build import build, checked, keys, reject_unknown
from .declaration import INTERNAL, Given, Rest, Variant, declaration, text
from .file import read
from .finding import Finding
from .form import FILE, Form, NameText, name
from .query import with_query
from .registry import Registry
from .values import parse_bytes

__all__ = [
    "FILE",
    "INTERNAL",
    "Finding",
    "Form",
    "Given",
    "NameText",
    "Registry",
    "Rest",
    "Variant",
    "build",
    "checked",
    "declaration",
    "keys",
    "name",
    "parse_bytes",
    "read",
    "reject_unknown",
    "text",
    "with_query",
]
