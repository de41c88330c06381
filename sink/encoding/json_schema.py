"""JSON Schema of Kafka Connect's schemas, as Confluent's JsonSchemaConverter registers them."""

from __future__ import annotations

from typing import Any, Final

_TYPES: Final[dict[str, dict[str, object]]] = {
    "int8": {"type": "integer", "connect.type": "int8"},
    "int16": {"type": "integer", "connect.type": "int16"},
    "int32": {"type": "integer", "connect.type": "int32"},
    "int64": {"type": "integer", "connect.type": "int64"},
    "float": {"type": "number", "connect.type": "float32"},
    "double": {"type": "number", "connect.type": "float64"},
    "bytes": {"type": "string", "connect.type": "bytes"},
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
}
_KEPT: Final = {"default": "default", "parameters": "connect.parameters", "version": "connect.version"}


def json_schema(connect: dict[str, Any], *, is_open: bool, index: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a schema in Kafka Connect's JSON form.

    With `is_open` objects may have further properties. `index` is the place among the fields of a struct.
    """
    place = {} if index is None else {"connect.index": index}
    match connect["type"]:
        case "struct":
            fields = enumerate(connect["fields"])
            properties = {
                one["field"]: json_schema(one, is_open=is_open, index=number) for number, one in fields
            }
            schema: dict[str, object] = {"type": "object", "properties": properties}
            if not is_open:
                schema["additionalProperties"] = False
        case "array":
            schema = {"type": "array", "items": json_schema(connect["items"], is_open=is_open)}
        case kind:
            schema = dict(_TYPES[kind])
    if "name" in connect:
        schema["title"] = connect["name"]
    schema |= {name: connect[key] for key, name in _KEPT.items() if key in connect}
    if connect["optional"]:
        return {"oneOf": [{"type": "null"}, schema], **place}
    return schema | place
