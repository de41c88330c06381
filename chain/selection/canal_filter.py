"""The choice of tables by Canal's regular expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ...errors import ConfigError
from .tables import TablePatterns


class CanalFilter(TablePatterns):
    r"""Regular expressions separated by commas, such as `shop\..*,bank\.acc.*`, and others that exclude.

    Each must match all of "schema.table"; upper and lower case are the same. No expression at all matches
    every table, and excludes none. Commas in (), [] and {} don't separate. Source: Canal's
    AviaterRegexFilter.

    Raises ConfigError for an expression that can't be compiled.
    """

    def __init__(self, regex: str, black_regex: str = "") -> None:
        self.patterns = (f"regex {regex}", f"black_regex {black_regex}")
        self._wanted = _compiled("regex", regex)
        self._black = _compiled("black_regex", black_regex)
        self.matches = lru_cache(maxsize=4096)(self._matches)

    def _matches(self, schema: str, table: str) -> bool:
        name = f"{schema}.{table}"
        is_wanted = not self._wanted or any(one.fullmatch(name) for one in self._wanted)
        return is_wanted and not any(one.fullmatch(name) for one in self._black)

    def touches(self, schema: str) -> bool:  # noqa: ARG002
        return True  # not known from an expression

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:
        names = [f"{schema}.{table}" for schema, table in tables]
        return [one.pattern for one in self._wanted if not any(map(one.fullmatch, names))]


def split(text: str) -> list[str]:
    """Return the parts between commas, without empty ones; commas in brackets don't separate."""
    parts, depth, is_escaped = [""], 0, False
    for letter in text:
        if letter == "," and depth == 0 and not is_escaped:
            parts.append("")
            continue
        parts[-1] += letter
        if not is_escaped:
            depth += (letter in "([{") - (letter in ")]}")
        is_escaped = letter == "\\" and not is_escaped
    return [part.strip() for part in parts if part.strip()]


def _compiled(name: str, text: str) -> list[re.Pattern[str]]:
    found = []
    for part in split(text):
        try:
            found.append(re.compile(part, re.IGNORECASE | re.DOTALL))
        except re.error as error:
            raise ConfigError(f"{name}: {part!r} is not a regular expression: {error}") from None
    return found
