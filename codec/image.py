"""The rows before, or after, changes as Arrow columns."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class Image(NamedTuple):
    """The rows before, or after, each of several changes."""

    columns: list[pa.Array] | None
    """One for each of the table's columns; None where no change has such a row."""
    absent: pa.Array | None
    """True for changes without such a row; None where every change has one."""


NO_IMAGE = Image(None, None)
