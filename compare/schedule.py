"""The speed of a verification: each pass ends within its period."""

from __future__ import annotations

from typing import Final

LEAST_ROWS_PER_SECOND: Final = 20.0
"""Speed of slow passes: a range of about a thousand rows once a minute."""
_PERIOD_PART: Final = 0.9
"""Part of a period after which a pass should be complete: some rows are read again."""
_LEFT_PART: Final = 0.1
"""Part of the estimated rows that is expected to be left if more than the estimate were compared."""


class Schedule:
    """Times are Unix seconds."""

    def __init__(self, every: float, most_rows_per_second: float) -> None:
        """`most_rows_per_second` is 0 for no limit."""
        self._every = every
        self._most = most_rows_per_second

    def seconds_left(self, began: float, now: float) -> float:
        """Return the time until the next pass is due, after a whole one that began at this time."""
        return min(self._every, began + self._every - now)  # the clock may have been set back

    def rows_per_second(self, began: float, now: float, rows: int, rows_estimated: int) -> float:
        """Return the speed for the rest of a pass after that number of rows; 0: as fast as possible."""
        if not rows_estimated:
            return self._most
        left = max(rows_estimated - rows, rows_estimated * _LEFT_PART)
        seconds = began + self._every * _PERIOD_PART - now
        speed = max(left / max(1.0, seconds), LEAST_ROWS_PER_SECOND)
        return min(speed, self._most) if self._most else speed
