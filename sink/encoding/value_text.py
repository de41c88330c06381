"""Values as text: the form that canal-json and simple share, in which every value is a string."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, tzinfo
from typing import Any, Final

from ...events import Column, Table
from ..text import datetime_text
from .encoder import refuse
from .numbers import EnumIndex, SetMask, plain_double, plain_single, vector_text


class Scope(dict[str, Any]):
    """Names for the generated expressions of one table."""

    def __init__(self, zone: tzinfo) -> None:
        super().__init__(
            plain_double=plain_double,
            plain_single=plain_single,
            vector_text=vector_text,
            b64=base64_text,
            zoned=lambda value, scale: zoned_text(value, scale, zone),
        )

        self.utc: Final = str(zone) == "UTC"

    def keep(self, thing: Any) -> str:
        """Add an object; return its name."""
        name = f"k{len(self)}"
        self[name] = thing
        return name


def base64_text(value: bytes) -> str:
    return b64encode(value).decode()


def zoned_text(value: datetime | str, scale: int, zone: tzinfo) -> str:
    """Return a timestamp in a time zone; a zero timestamp is the same in all."""
    if isinstance(value, str):
        return value
    return datetime_text(value.astimezone(zone), scale)


def text_expression(encoding: str, table: Table, column: Column, var: str, scope: Scope) -> str:
    """Return a Python expression for the text of a value that isn't None, but bytes: `var` stays as it is.

    Raises NotEncodable for a kind that has no text.
    """
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year" | "date":
            return f"str({var})"
        case "float":
            return f"plain_single({var})"
        case "double":
            # repr() of such a number has no exponent: a call less for nearly all
            return f"(repr({var}).removesuffix('.0') if 1e-4 <= {var} < 1e15 else plain_double({var}))"
        case "decimal":
            return f"f'{{{var}:.{column.scale}f}}'"
        case "datetime" if not column.scale:
            return f"str({var})[:19]"
        case "timestamp" if not column.scale and scope.utc:
            return f"str({var})[:19]"
        case "datetime":
            return f"datetime_text({var}, {column.scale})"
        case "timestamp":
            return f"zoned({var}, {column.scale})"
        case "time":
            return f"time_text({var}, {column.scale})"
        case "enum":
            return f"str({scope.keep(EnumIndex(column.members))}[{var}])"
        case "set":
            return f"str({scope.keep(SetMask(column.members))}[{var}])"
        case "vector":
            return f"vector_text({var})"
        case "geometry":
            refuse(encoding, table, column.name, "it has no form for a geometry")
    return var
