"""What a backfill can't load."""

from __future__ import annotations

from ...errors import SourceError


class NotLoadable(SourceError):
    """Tables whose rows can't be brought to one moment here; the snapshot of an ordinary feed loads them."""
