"""Types and schemas that hold the values of two without loss."""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as t

from ...errors import ConfigError
from .schema import MOST_DIGITS

_INTEGERS: Final[dict[t.DataType, int]] = {
    t.ByteType(): 3,
    t.ShortType(): 5,
    t.IntegerType(): 10,
    t.LongType(): 19,
}
"""Integer types, ascending, with their most digits."""
_FLOATS: Final = frozenset({t.FloatType(), t.DoubleType()})


def wider_type(one: t.DataType, other: t.DataType) -> t.DataType | None:
    """Return the narrowest type that has the values of both, exactly; None if there is none."""
    if one == other:
        return one
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=lambda found: _INTEGERS[found])
    if {one, other} == _FLOATS:
        return t.DoubleType()
    decimals = _decimal(one), _decimal(other)
    if None in decimals:
        return None
    scale = max(found.scale for found in decimals if found)
    digits = scale + max(found.precision - found.scale for found in decimals if found)
    return t.DecimalType(digits, scale) if digits <= MOST_DIGITS else None


def holds(one: t.DataType, other: t.DataType) -> bool:
    """True if the first type has every value of the other, exactly."""
    return wider_type(one, other) == one


def widened(one: t.StructType, other: t.StructType) -> t.StructType:
    """Return the columns of both schemas, those of `other` first, also within their structs.

    Columns of both have a type that holds the values of both. Raises ConfigError if there is none.
    """
    older = {field.name: field for field in one}
    fields = [_joined(older.get(field.name, field), field) for field in other]
    return t.StructType([*fields, *(field for field in one if field.name not in other.names)])


def _joined(one: t.StructField, other: t.StructField) -> t.StructField:
    types = one.dataType, other.dataType
    if isinstance(types[0], t.StructType) and isinstance(types[1], t.StructType):
        joined: t.DataType | None = widened(types[0], types[1])
    else:
        joined = wider_type(*types)
    if joined is None:
        names = " and ".join(kind.simpleString() for kind in types)
        raise ConfigError(f"column {other.name}: no type holds both {names}; read the raw envelope")
    # The metadata of rows tells a table, which doesn't have the columns of both.
    metadata = {} if isinstance(joined, t.StructType) else {**one.metadata, **other.metadata}
    return t.StructField(other.name, joined, one.nullable or other.nullable, metadata)


def _decimal(type_: t.DataType) -> t.DecimalType | None:
    """Return the decimal type that holds a decimal or an integer type."""
    if isinstance(type_, t.DecimalType):
        return type_
    return t.DecimalType(_INTEGERS[type_], 0) if type_ in _INTEGERS else None
