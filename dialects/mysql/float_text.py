"""Values of FLOAT(M,D) and DOUBLE(M,D), which a server rounds to D digits when a statement stores them."""

from __future__ import annotations

import math
from functools import lru_cache
from struct import Struct
from typing import Final

_FLOAT: Final = Struct("<f")


def rounded_text(value: float, digits: int, scale: int, is_float: bool) -> str:
    """Return the text by which a statement stores exactly this value in a FLOAT or DOUBLE(digits,scale).

    A column may have values that no statement can store: a server doesn't round existing rows when it gives
    a FLOAT its digits. Their text isn't a number, so a server in strict mode refuses it and quotes it.
    """
    most = _most(digits, scale)
    bounded = max(-most, min(most, value))  # as FLOAT the largest value may be a larger number
    whole = math.floor(bounded)
    stored = whole + round((bounded - whole) * 10.0**scale) / 10.0**scale
    if (_FLOAT.unpack(_FLOAT.pack(stored))[0] if is_float else stored) == value:
        return repr(bounded)
    kind = "FLOAT" if is_float else "DOUBLE"
    return f"no {kind}({digits},{scale}), round it in the source: {value!r}"


@lru_cache
def _most(digits: int, scale: int) -> float:
    return float("9" * (digits - scale) + "." + "9" * scale)
