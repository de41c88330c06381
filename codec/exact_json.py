"""Values of rows as JSON that decodes to equal values of the same types.

null, true, false, texts and integers are themselves, a float is a number with a point or an exponent; every
other value is an object of one member that names its type.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from ..events import Row

_MICROSECOND: Final = timedelta(microseconds=1)


def encode_values(values: Sequence[object]) -> str:
    """Return the values as a JSON array in ASCII. Raises TypeError or ValueError for one without a form."""
    return json.dumps([_plain(value) for value in values], allow_nan=False, separators=(",", ":"))


def decode_values(text: str) -> Row:
    """Return the values of an array that `encode_values` made. Raises ValueError if it is damaged."""
    try:
        return tuple([_value(each) for each in json.loads(text)])
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{text[:60]!r} is no list of values: {error!r}") from error


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is bytes:
        return {"bytes": b64encode(value).decode()}
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind is date:
        return {"date": value.isoformat()}
    if kind is datetime:
        return {"datetime": value.isoformat()}
    if kind is timedelta:
        return {"microseconds": value // _MICROSECOND}
    raise TypeError(f"no JSON for a value of type {kind.__name__}")


_MAKE: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes": lambda text: b64decode(text, validate=True),
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "microseconds": lambda count: count * _MICROSECOND,
}


def _value(tagged: object) -> object:
    if not isinstance(tagged, dict):
        return tagged
    ((kind, content),) = tagged.items()
    return _MAKE[kind](content)
