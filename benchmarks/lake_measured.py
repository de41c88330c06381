"""The result of one part of a benchmark."""

from __future__ import annotations

from typing import NamedTuple


class Measured(NamedTuple):
    """Figures by name, and those of the yardstick by the same names.

    Names that end in _seconds, _bytes or _ms are costs; others are rates.
    """

    figures: dict[str, float]
    yardstick: dict[str, float]
