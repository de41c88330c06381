"""Patterns of names: with wildcards, or regular expressions."""

from __future__ import annotations

import re
from fnmatch import translate

from ...errors import ConfigError


class NamePattern:
    """A name with `*` and `?` as wildcards; after `~`, a regular expression for the whole name.

    Raises ConfigError, naming the option `where`.
    """

    def __init__(self, text: str, where: str, *, ignores_case: bool = False) -> None:
        self.text = text
        flags = re.IGNORECASE if ignores_case else re.NOFLAG
        try:
            self._re = re.compile(text[1:] if text.startswith("~") else translate(text), flags)
        except re.error as error:
            raise ConfigError(f"{where} = {text!r}: not a regular expression: {error}") from None
        if not text.removeprefix("~"):
            raise ConfigError(f'{where}: empty; write a name, "*" for any, or "~" and a regular expression')

    @property
    def groups(self) -> frozenset[str]:
        """Numbers and names of the expression's groups; a pattern with wildcards has none."""
        if not self.text.startswith("~"):
            return frozenset()
        return frozenset({*map(str, range(1, self._re.groups + 1)), *self._re.groupindex})

    def matches(self, name: str) -> bool:
        return self._re.fullmatch(name) is not None

    def group(self, name: str, group: str) -> str:
        """Return what a group, by its number or name, matches of a name that matches; empty if it has no
        part in the match."""
        match = self._re.fullmatch(name)
        assert match is not None
        return match[int(group) if group.isdigit() else group] or ""
