"""The sql_mode in which a target's server converts values as the source did."""

from __future__ import annotations

from typing import Final

STRICT: Final = "NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""SQL mode by which values are stored unchanged (a zero date, an id of 0) or rejected."""

WITHOUT_STRICT: Final = STRICT.replace("STRICT_ALL_TABLES,", "")
"""SQL mode by which invalid values are stored too, with a warning each."""

_BITS: Final = {
    21: "STRICT_TRANS_TABLES",
    22: "STRICT_ALL_TABLES",
    23: "NO_ZERO_IN_DATE",
    24: "NO_ZERO_DATE",
    25: "ALLOW_INVALID_DATES",
    26: "ERROR_FOR_DIVISION_BY_ZERO",
    31: "PAD_CHAR_TO_FULL_LENGTH",
    34: "TIME_ROUND_FRACTIONAL",
}
"""Modes of MariaDB that decide about a conversion, by their bit. The other modes decide how a statement is
read, and ours is written in the same way whatever the source's was."""


def converting(sql_mode: int) -> str:
    """Return the modes for a conversion, of those that the session of a MariaDB source had."""
    return ",".join(["NO_AUTO_VALUE_ON_ZERO", *(name for bit, name in _BITS.items() if sql_mode >> bit & 1)])
