"""The order of keys in the emulated servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from ...events import OrderedKey, Table, key_order

_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)


def server_order(table: Table) -> Callable[[Sequence[Any]], OrderedKey] | None:
    """Return the function from a row to its key, as `key_order` does for a feed; None if there is none.

    Whatever that holds for equal, a collation without regard to case has a letter of ASCII in one case only.
    """
    order = key_order(table)
    folded = {i for i in table.key if (table.columns[i].collation or "").endswith("_ci")}
    if order is None or not folded:
        return order
    return lambda row: order(
        [value.translate(_UPPER) if place in folded else value for place, value in enumerate(row)]
    )
