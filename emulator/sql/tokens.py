"""Tokens of statements."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""\s+ | --\s[^\n]* | /\*.*?\*/
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<text>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")
    | (?P<bits>[bB]'[01]*') | (?P<hex>[xX]'[0-9a-fA-F]*'|0x[0-9a-fA-F]+)
    | (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<sign>[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


class Token(str):
    """A token: its text without quotes; `kind` is the group of the pattern that matched it."""

    kind: str

    @staticmethod
    def made(kind: str, text: str) -> Token:
        token = Token(text)
        token.kind = kind
        return token


class Tokens:
    """A statement's tokens, read from the front. Unexpected tokens raise ValueError."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self._tokens = list(_split(statement))
        self._at = 0

    @property
    def next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self) -> Token:
        token = self.next
        if token is None:
            raise ValueError(f"the statement ends too early: {self.statement}")
        self._at += 1
        return token

    def has(self, *words: str) -> bool:
        """Consume these words or signs if they come next; True if they did."""
        coming = self._tokens[self._at : self._at + len(words)]
        ahead = [token.lower() for token in coming if token.kind in ("word", "sign")]
        if ahead != list(words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.has(*words):
            raise self.unexpected(" ".join(words).upper())

    def name(self) -> str:
        token = self.take()
        if token.kind not in ("name", "word"):
            raise ValueError(f"{token!r} can't be a name: {self.statement}")
        return str(token)

    def names(self) -> list[str]:
        """Consume and return names in parentheses."""
        self.expect("(")
        names = [self.name()]
        while self.has(","):
            names.append(self.name())
        self.expect(")")
        return names

    def number(self) -> int:
        return int(self.take())

    def enclosed(self) -> str:
        """Consume parentheses and return their content, as written except for spaces."""
        self.expect("(")
        depth = 1
        parts: list[str] = []
        while True:
            token = self.take()
            depth += (token.kind == "sign") * ((token == "(") - (token == ")"))
            if not depth:
                return " ".join(parts)
            parts.append(f"`{token}`" if token.kind == "name" else repr_of(token))

    def unexpected(self, wanted: str) -> ValueError:
        return ValueError(
            f"the emulator expects {wanted} instead of {self.next or 'the end'!r}: {self.statement}"
        )


def repr_of(token: Token) -> str:
    return f"'{token}'" if token.kind == "text" else str(token)


def _split(statement: str) -> list[Token]:
    tokens, offset = [], 0
    text = statement.rstrip().removesuffix(";")
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise ValueError(f"{text[offset:]!r} can't be read: {statement}")
        offset = match.end()
        if match.lastgroup:
            tokens.append(Token.made(match.lastgroup, _bare(match.lastgroup, match[0])))
    return tokens


def _bare(kind: str, text: str) -> str:
    match kind:
        case "name":
            return text[1:-1].replace("``", "`")
        case "text":
            quote = text[0]
            inner = text[1:-1].replace(quote * 2, quote)
            return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), inner, flags=re.DOTALL)
        case "bits":
            return text[2:-1]
        case "hex":
            return text[2:].rstrip("'")
    return text
