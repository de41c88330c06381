"""Results of a preflight check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about a source or a target, and its severity."""

    level: Literal["ok", "warning", "error"]
    """Severity; with "error" the feed can't run."""
    text: str
    about: str = ""
    """ "source", or "sink" and its name; set by the caller of the check."""
