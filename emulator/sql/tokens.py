"""Tokens of statements."""

from __future__ import annotations

from collections.abc import Iterator

from ...codec.mysql import tokens as mysql
from ...codec.mysql.tokens import NotUnderstood


class Token(str):
    """A token: its text without quotes."""

    kind: str
    """word, name (in quotes), string, number, mark, bits or hex"""

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
        ahead = [token.lower() for token in coming if token.kind in ("word", "mark")]
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
            depth += (token.kind == "mark") * ((token == "(") - (token == ")"))
            if not depth:
                return " ".join(parts)
            parts.append(f"`{token}`" if token.kind == "name" else repr_of(token))

    def unexpected(self, wanted: str) -> ValueError:
        return ValueError(
            f"the emulator expects {wanted} instead of {self.next or 'the end'!r}: {self.statement}"
        )


def repr_of(token: Token) -> str:
    return f"'{token}'" if token.kind == "string" else str(token)


def _split(statement: str) -> Iterator[Token]:
    read = mysql.Tokens(statement.rstrip().removesuffix(";"), of_mysql=True)
    try:
        while (token := read.take()).kind != "end":
            coming = read.next
            is_prefix = token.kind == "word" and token.value in ("B", "X")
            if is_prefix and coming.kind == "string" and coming.start == token.end:
                yield Token.made("bits" if token.value == "B" else "hex", read.take().value)
            elif token.text.startswith("0x"):
                yield Token.made("hex", token.text[2:])
            else:
                yield Token.made(token.kind, token.text if token.kind == "word" else token.value)
    except NotUnderstood as error:
        raise ValueError(f"{error}: {statement}") from None
