"""Forms of options: how their values are parsed, and how errors name them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from .url import redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Wording of errors; without arguments, of a TOML file, whose keys are named with their section."""

    is_text: bool = False
    """True if all values are text, and names may be in upper or lower case."""
    noun: str = "key"
    before: str = ""
    """Words before each name, such as "option "."""
    after: str = ""
    """Words after each name, such as " in the URL"."""
    separator: str = "."
    """Characters between a section and a key; empty: keys are named without their section."""
    shows_values: bool = False
    others: str = ""
    """Accepted keys besides the declared ones of the outermost section, in words."""
    example: str = ""
    """A required value, in words."""

    def path(self, where: str, key: str) -> str:
        """Return the full name of a key."""
        return f"{self.before}{where}{self.separator}{key}" if where and self.separator else self.before + key

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:
        """Return the sentence about a key that isn't accepted."""
        names = [*sorted(known), *([self.others] if self.others and not where else [])]
        return (
            f"{self.path(where, key)}{self.after}: no such {self.noun}{_nearest(key, known)} "
            f"(accepted: {', '.join(names) or 'none'})"
        )

    def wrong(self, where: str, key: str, value: object, why: str) -> str:
        """Return the sentence about a value; `why` names the accepted values."""
        shown = repr(redacted(value) if isinstance(value, str) else value)
        return f"{self.path(where, key)}{f' = {shown}' if self.shows_values else ''}{self.after}: {why}"

    def missing(self, where: str, key: str) -> str:
        """Return the sentence about a key that must be given."""
        return f"{self.path(where, key)}{self.after}: missing{self.example and f'; {self.example}'}"

    def conflict(self, where: str, said: str, known: Collection[str]) -> str:
        """Return the sentence about values that don't go together, from the section's own sentence: it begins
        with one of the keys, or it is about the whole section."""
        if where and said.startswith((f"{where}.", f"{where}: ")):
            return said
        first = re.match(r"[\w-]*", said)
        if first is not None and first[0] in known:
            return self.path(where, said)
        return f"{where}: {said}" if where else said


FILE: Final = Form()


def _nearest(key: str, known: Collection[str]) -> str:
    """Return a hint at the known key most similar to `key`, ignoring case; empty if there is none."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.5)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

NameText: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": f"^{NAME.pattern}$"})]
"""Type of a name as it is written."""


def name(text: str, _: str = "") -> str:
    """Return the name. Raises ValueError."""
    if not NAME.fullmatch(text):
        raise ValueError("up to 64 letters, digits, - and _, for it is part of file names")
    return text
