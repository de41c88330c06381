"""Patterns of names: with wildcards, or regular expressions."""

from __future__ import annotations

import re
from fnmatch import translate

from ..errors import ConfigError


class NamePattern:
    """A name with `*` and `?` as wildcards; after `~`, a regular expression for the whole name.

    Raises ConfigError, naming the option `where`.
    """

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        try:
            self._re = re.compile(text[1:] if text.startswith("~") else translate(text))
        except re.error as error:
            raise ConfigError(f"{where} = {text!r}: not a regular expression: {error}") from None
        if not text.removeprefix("~"):
            raise ConfigError(f'{where}: empty; write a name, "*" for any, or "~" and a regular expression')

    def matches(self, name: str) -> bool:
        return self._re.fullmatch(name) is not None
