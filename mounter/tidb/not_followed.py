"""The reason why a job can't be followed."""

from __future__ import annotations


class NotFollowed(Exception):
    """A job makes a change that sinks can't apply; the text names it."""
