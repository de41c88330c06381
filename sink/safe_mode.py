"""Safe mode: changes that may have been applied before are applied again without harm."""

from __future__ import annotations

from collections import Counter
from typing import Final

CONFIGURED: Final = "configured"
AFTER_START: Final = "after start"
"""For a while after a start, once for each table whose rows the target can't keep with the checkpoint."""


class SafeMode:
    """Reasons for safe mode, each counted; it is active while there is any.

    Changed by one thread at a time; `reasons` may be called by any.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @property
    def is_active(self) -> bool:
        return bool(self._counts)

    @property
    def reasons(self) -> dict[str, int]:
        """Number of times that it was entered and not left, by reason."""
        return dict(sorted(self._counts.copy().items()))

    def enter(self, reason: str) -> None:
        """Begin it for a reason, once more if it has begun for it."""
        self._counts[reason] += 1

    def leave(self, reason: str) -> None:
        """End it for a reason, which must have been entered."""
        if self._counts[reason] <= 1:
            del self._counts[reason]
        else:
            self._counts[reason] -= 1
