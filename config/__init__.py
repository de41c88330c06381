"""Options, from a feed.toml or from text, as frozen dataclasses; preflight findings; registries of kinds."""

from .build import build, keys, option_fields, parse_bytes, reject_unknown
from .file import read
from .finding import Finding
from .form import FILE, Form, Text
from .query import with_query
from .registry import Registry

__all__ = [
    "FILE",
    "Finding",
    "Form",
    "Registry",
    "Text",
    "build",
    "keys",
    "option_fields",
    "parse_bytes",
    "read",
    "reject_unknown",
    "with_query",
]
