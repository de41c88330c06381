"""Results of a preflight check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about a source or a target, and how bad it is."""

    level: Literal["ok", "warning", "error"]
    """error: the feed can't run."""
    text: str
    about: str = ""
    """"source", or "sink" and its name; filled in by whoever asked."""
