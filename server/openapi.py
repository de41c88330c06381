"""The OpenAPI 3.1 document of the API, made from the declared operations and their types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from .. import __version__
from ..config.schema import docstrings, section_schema
from ..engine.options import FeedOptions
from .model.failures import ErrorBody
from .model.feeds import DOCUMENT
from .operation import JSON, Operation

TEMPLATE: Final = "#/components/schemas/{name}"
_READ: Final = (401, 403, 404, 422)
_WRITTEN: Final = (400, 401, 403, 404, 408, 409, 413, 415, 422)
_SLOW: Final = (502, 503)
_TEXTS: Final = {
    400: "The body isn't JSON",
    401: "The token is missing or unknown",
    403: "The host or the origin of the request is foreign",
    404: "There is no such feed, table or job",
    408: "The body didn't come in time",
    409: "The feed's state doesn't allow it",
    413: "The body is too large",
    415: "The body isn't declared to be JSON",
    422: "A value is wrong; `field` names it",
    502: "A database refused",
    503: "A database can't be reached, or the server is busy",
}


def openapi(operations: Sequence[Operation]) -> dict[str, object]:
    """Return the document."""
    types = {one for each in operations for one in _types(each)} | {ErrorBody}
    ordered = sorted(types, key=str)
    schemas, components = msgspec.json.schema_components(ordered, ref_template=TEMPLATE)
    by_type = dict(zip(ordered, schemas, strict=True))
    structs = _structs(types)
    described = {name: _with_docstrings(name, schema, structs) for name, schema in components.items()}
    paths: dict[str, dict[str, object]] = {}
    for one in operations:
        paths.setdefault(one.documented_path, {})[one.method.lower()] = _operation(one, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidemill",
            "version": __version__,
            "description": "Feeds of one process: their states, tables, lags and operations.",
        },
        "paths": paths,
        "components": {
            "schemas": {**described, DOCUMENT: section_schema(FeedOptions)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _types(one: Operation) -> list[object]:
    return [kind for kind in (one.answer if one.media == JSON else None, one.body) if kind is not None]


def _operation(one: Operation, by_type: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    summary, _, rest = one.described.partition("\n\n")
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": " ".join(summary.split()),
        "parameters": [*_path_parameters(one), *_query_parameters(one)],
        "responses": {str(one.status): _success(one, by_type)},
    }
    if rest:
        described["description"] = " ".join(rest.split())
    if one.body is not None:
        described["requestBody"] = {
            "required": not one.body_is_optional,
            "content": {JSON: {"schema": by_type[one.body]}},
        }
    error = by_type[ErrorBody]
    for status in (*(_READ if one.method == "GET" else _WRITTEN), *(_SLOW if one.is_slow else _SLOW[1:])):
        described["responses"][str(status)] = _response(_TEXTS[status], error)
    return described


def _success(one: Operation, by_type: dict[object, dict[str, object]]) -> dict[str, object]:
    if one.media == JSON:
        return _response("Success", by_type[one.answer])
    media = one.media.partition(";")[0]
    return {"description": "Success", "content": {media: {"schema": {"type": "string"}}}}


def _response(text: str, schema: dict[str, object]) -> dict[str, object]:
    return {"description": text, "content": {JSON: {"schema": schema}}}


def _path_parameters(one: Operation) -> Iterable[dict[str, object]]:
    for name, kind in one.parameters.items():
        schema = {**msgspec.json.schema(kind), "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(one: Operation) -> Iterable[dict[str, object]]:
    if one.query is None:
        return
    _, components = msgspec.json.schema_components([one.query], ref_template=TEMPLATE)
    texts = docstrings(one.query)
    for name, schema in components[one.query.__name__]["properties"].items():
        parameter = {"name": name, "in": "query", "required": False, "schema": schema}
        if name in texts:
            parameter["description"] = " ".join(texts[name].split())
        yield parameter


def _structs(types: Iterable[object]) -> dict[str, type]:
    """Return all structs that are in these types, by name."""
    structs: dict[str, type] = {}
    waiting = [msgspec.inspect.type_info(one) for one in types]
    while waiting:
        info = waiting.pop()
        match info:
            case msgspec.inspect.StructType(cls=cls, fields=fields) if cls.__name__ not in structs:
                structs[cls.__name__] = cls
                waiting += [field.type for field in fields]
            case msgspec.inspect.ListType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item):
                waiting.append(item)
            case msgspec.inspect.DictType(value_type=item):
                waiting.append(item)
            case msgspec.inspect.UnionType(types=several):
                waiting += several
            case msgspec.inspect.Metadata(type=inner):
                waiting.append(inner)
    return structs


def _with_docstrings(name: str, schema: dict[str, Any], structs: dict[str, type]) -> dict[str, Any]:
    """Return a struct's schema, its properties described by their docstrings."""
    cls = structs.get(name)
    if cls is None or "properties" not in schema:
        return schema
    texts = docstrings(cls)
    properties = {
        key: {**one, "description": " ".join(texts[key].split())} if key in texts else one
        for key, one in schema["properties"].items()
    }
    return {**schema, "properties": properties}
