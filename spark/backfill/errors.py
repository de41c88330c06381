"""Errors of a backfill."""

from __future__ import annotations

from ...errors import SourceError


class NotLoadable(SourceError):
    """The tables' rows can't be brought to one position; the snapshot of an ordinary feed loads them."""
