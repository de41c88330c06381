"""Forms of options: how their values are parsed, and how errors name them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Annotated, Final, TypeAlias

from msgspec import Meta


class Form:
    """Options of a TOML file: typed values, named by their section and key."""

    is_text = False
    """True if all values are text, and names may be in upper or lower case."""

    def path(self, where: str, key: str) -> str:
        """Return the full name of a key."""
        return f"{where}.{key}" if where else key

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:
        """Return the sentence about a key that isn't accepted."""
        name = FILE.path(where, key)
        return f"{name}: no such key{nearest(key, known)} (accepted: {', '.join(sorted(known))})"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:  # noqa: ARG002
        """Return the sentence about a value; `why` names the accepted values."""
        return f"{self.path(where, key)}: {why}"

    def missing(self, where: str, key: str) -> str:
        """Return the sentence about a key that must be given."""
        return f"{self.path(where, key)}: missing"

    def conflict(self, where: str, said: str, known: Collection[str]) -> str:
        """Return the sentence about values that don't go together, from the section's own sentence: it begins
        with one of the keys, or it is about the whole section."""
        if not where or said.startswith((f"{where}.", f"{where}: ")):
            return said
        first = re.match(r"\w*", said)
        is_about_key = first is not None and first[0] in known
        return self.path(where, said) if is_about_key else f"{where}: {said}"


FILE: Final = Form()


def nearest(key: str, known: Collection[str]) -> str:
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
