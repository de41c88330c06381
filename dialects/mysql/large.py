"""Large values of statements: the text has a token in place of each; the value is rendered while it is sent.

So a value of any size costs a sink a piece of its text at a time, and not the text and its copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from secrets import token_hex
from typing import Final, TypeAlias

Value: TypeAlias = bytes | str

LARGE: Final = 1 << 20
"""Length from which on a value is large."""
_PIECE: Final = 1 << 17
"""Length of a value that is rendered at once."""


class LargeValues:
    """The large values of statements that were rendered and aren't sent yet. Used by one thread."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._numbers = count()
        # No value contains a token, as nobody knows the secret; a token that is sent is a syntax error.
        self._secret = token_hex(16)
        self._tokens = re.compile(f"(\0{self._secret}:\\d+\0)")

    def add(self, value: Value) -> str:
        """Keep a value; return the token that stands for its literal."""
        token = f"\0{self._secret}:{next(self._numbers)}\0"
        self._values[token] = value
        return token

    def clear(self) -> None:
        """Forget the values of statements that won't be sent."""
        self._values.clear()

    def has(self, text: str) -> bool:
        """Return True if the text has tokens."""
        return bool(self._values) and self._secret in text

    def size(self, text: str) -> int:
        """Return the length of the text with its values; that of Unicode may be more in bytes."""
        if not self.has(text):
            return len(text)
        return len(text) + sum(
            2 * len(value) if isinstance(value, bytes) else len(value)
            for value in map(self._values.__getitem__, self._tokens.findall(text))
        )

    def byte_size(self, text: str) -> int:
        """Return the exact size of the text with its values."""
        if self.has(text):
            return sum(map(len, self.pieces(text)))
        return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))

    def pieces(self, text: str) -> Iterator[bytes]:
        """Yield the text with its values, in pieces."""
        for part in self._tokens.split(text):
            value = self._values.get(part)
            if value is None:
                yield part.encode(errors="surrogateescape")
            else:
                yield from _literal(value)

    def drop(self, text: str) -> None:
        """Forget the values of a statement that was sent."""
        for token in self._tokens.findall(text):
            self._values.pop(token, None)

    def shown(self, text: str) -> str:
        """Return the text for people, with the lengths of its values; they are forgotten."""
        if not self.has(text):
            return text
        result = self._tokens.sub(lambda match: f"<value of length {len(self._values[match[1]])}>", text)
        self.drop(text)
        return result


def _literal(value: Value) -> Iterator[bytes]:
    """Yield a literal, for a session with NO_BACKSLASH_ESCAPES."""
    if isinstance(value, bytes):
        yield b"x'"
        for start in range(0, len(value), _PIECE):
            yield value[start : start + _PIECE].hex().encode()
    else:
        yield b"'"
        for start in range(0, len(value), _PIECE):
            yield value[start : start + _PIECE].replace("'", "''").encode(errors="surrogateescape")
    yield b"'"
