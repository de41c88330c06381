"""The JSON Schema of a feed.toml, made of the options that are declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..chain.selection.kinds import DDL_KINDS
from ..chain.selection.rule import DDL_ACTIONS
from ..chain.selection.sections import FilterOptions, OmissionOptions, RowsOptions
from ..chain.transform.options import TransformOptions
from ..config.schema import section_schema
from ..sharding.options import RouteOptions, ShardingOptions
from ..sink.registry import SINKS
from ..sink.relay.options import RelayOptions
from ..sorter import SorterOptions
from ..sources.registry import SOURCES

_TEXT: Final = {"type": "string"}
_PATTERNS: Final = {
    "type": "array",
    "items": {"type": "string"},
    "description": 'Patterns such as "shop.*" and "!shop.tmp_*"; the last one that matches decides.',
}


def feed_schema(sections: Mapping[str, type] | None = None) -> dict[str, Any]:
    """Return the schema. `sections` has the options of sections that commands read by themselves."""
    source = {"anyOf": [_source(kind) for kind in SOURCES]}
    properties: dict[str, Any] = {
        "name": {**_TEXT, "pattern": "^[A-Za-z0-9_-]{1,64}$", "default": "tidemill"},
        "data_dir": {**_TEXT, "description": "Directory of the feed's state.", "default": "tidemill-data"},
        "until": {**_TEXT, "description": 'Position at which the feed ends, or "now".'},
        "source": {"anyOf": [source, {"type": "array", "items": {"$ref": "#/$defs/one_source"}}]},
        "sink": {
            "type": "array",
            "items": {"anyOf": [_sink(kind.options, kind.schemes) for kind in SINKS if kind.schemes]},
        },
        "sorter": section_schema(SorterOptions),
        "on_ddl": {"type": "array", "items": _rule()},
        "filter": {"type": "array", "items": section_schema(FilterOptions)},
        "transform": {"type": "array", "items": section_schema(TransformOptions)},
        "sharding": section_schema(ShardingOptions),
        "route": {"type": "array", "items": section_schema(RouteOptions)},
    }
    properties |= {name: section_schema(options) for name, options in (sections or {}).items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A feed of tidemill",
        "type": "object",
        "properties": properties,
        "required": ["source"],
        "additionalProperties": False,
        "$defs": {
            "one_source": {"type": "object", "properties": {"name": _TEXT}, "required": ["name", "url"]}
        },
    }


def _source(kind: Any) -> dict[str, Any]:
    schema = section_schema(kind.options, kind.url_only)
    schema["properties"] |= {"url": _url(kind.schemes, kind.example), "tables": _PATTERNS}
    schema["required"] = ["url"]
    return schema


def _sink(options: type, schemes: tuple[str, ...]) -> dict[str, Any]:
    schema = section_schema(options)
    relay = {"anyOf": [_TEXT, section_schema(RelayOptions)]}
    schema["properties"] |= {
        **section_schema(OmissionOptions)["properties"],
        "name": {**_TEXT, "pattern": "^[A-Za-z0-9_-]{1,64}$"},
        "url": _url(schemes, ""),
        "urls": {"type": "array", "items": _TEXT},
        "split_by": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "tables": _PATTERNS,
        "regex": _TEXT,
        "black_regex": _TEXT,
        "rows": {"type": "array", "items": section_schema(RowsOptions)},
        "relay": relay,
    }
    return schema


def _url(schemes: tuple[str, ...], example: str) -> dict[str, Any]:
    schema: dict[str, Any] = {**_TEXT, "pattern": rf"^(\$\{{|({'|'.join(schemes)})(\+\w+)?:)"}
    return {**schema, "examples": [example]} if example else schema


def _rule() -> dict[str, Any]:
    kinds = {"type": "array", "items": {"enum": list(DDL_KINDS)}}
    properties = {"tables": _PATTERNS, "kinds": kinds, "action": {"enum": list(DDL_ACTIONS)}}
    return {
        "type": "object",
        "properties": properties,
        "required": ["tables", "action"],
        "additionalProperties": False,
    }
