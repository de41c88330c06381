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
    tables: tuple[str, ...] = ()
    """Full names of the source's tables that it is about; empty if it is about all, or about none."""
    remedy: tuple[str, ...] = ()
    """Statements, or commands of a shell, that correct it; each can be run as it is."""

    @property
    def sentence(self) -> str:
        """The text, with the remedy."""
        return f"{self.text}: {'; '.join(self.remedy)}" if self.remedy else self.text
