"""Names of the tables by which gh-ost and pt-online-schema-change change a table."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"_{1,11}(.+)_(gho|new|ghc|del|old)")
_SHADOWS: Final = ("gho", "new")


class Ghost(NamedTuple):
    """A table of an online schema change: `_NAME_gho` or `_NAME_new` takes the place of the table NAME."""

    table: str
    """Name of the table that is changed."""
    is_shadow: bool
    """True for the table that takes its place; False for its old version, and for logs of the change."""


def ghost_of(table: str) -> Ghost | None:
    """Return what a name says; None if it isn't one of these."""
    match = _NAME.fullmatch(table)
    return None if match is None else Ghost(match[1], match[2] in _SHADOWS)
