"""Forms of options: how their values are parsed, and how errors name them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Text:
    """Annotates a field that is given as text: `Annotated[int, Text("maxRows", whole)]`."""

    name: str
    """Name of the option as users write it."""
    parse: Callable[[str], Any]
    """Function that parses the text; raises ValueError that names the accepted values."""


class Form:
    """Options of a TOML file: typed values, named by their section and key."""

    is_text = False
    """True if all values are text, and names may be in upper or lower case."""

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:
        """Return the sentence about a key that isn't accepted."""
        name = f"{where}.{key}" if where else key
        return f"{name}: no such key{nearest(key, known)} (accepted: {', '.join(sorted(known))})"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:  # noqa: ARG002
        """Return the sentence about a value; `why` names the accepted values."""
        return f"{where}.{key}: {why}"

    def missing(self, where: str, key: str) -> str:
        """Return the sentence about a key that must be given."""
        return f"{where}.{key}: missing" if where else f"{key}: missing"


FILE: Final = Form()


def nearest(key: str, known: Collection[str]) -> str:
    """Return a hint at the known key most similar to `key`, ignoring case; empty if there is none."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.5)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
