"""The number of rows that a worker applies in one SQL transaction."""

from __future__ import annotations

from typing import Final

START_ROWS: Final = 4_000
LEAST_ROWS: Final = 250
"""Less would cost more for the commit than for the rows."""
MOST_ROWS: Final = 10_000
"""Half of what the pool accepts, so that another worker has something to do."""
FAST_SECONDS: Final = 0.25
SLOW_SECONDS: Final = 1.0
"""Time after which others wait too long: for its rows, for its locks, or for a checkpoint."""


class BatchSize:
    """Grows by a quarter after a fast SQL transaction, and is halved after a slow one."""

    def __init__(self) -> None:
        self.rows: int = START_ROWS
        """Maximum number of rows of the next SQL transaction; a larger transaction of the source is alone."""

    def note(self, rows: int, seconds: float) -> None:
        """Note the time of a SQL transaction of this number of rows, from its begin to after its commit."""
        if seconds > SLOW_SECONDS and rows > LEAST_ROWS:
            self.rows = max(LEAST_ROWS, min(self.rows, rows // 2))
        elif seconds < FAST_SECONDS and rows * 2 > self.rows:
            self.rows = min(MOST_ROWS, self.rows * 5 // 4)
