"""Parsing of the names of character sets and collations."""

from __future__ import annotations

from .tokens import NotUnderstood, Tokens


def accept_charset(tokens: Tokens) -> bool:
    """Consume CHARACTER SET or a synonym, and the "=" that may follow."""
    is_charset = tokens.accept("CHARACTER", "SET") or tokens.accept("CHAR", "SET") or tokens.accept("CHARSET")
    if is_charset:
        tokens.accept("=")
    return is_charset


def read_charset(tokens: Tokens) -> str:
    """Read the name of a character set."""
    return _full_charset(_word(tokens))


def read_collation(tokens: Tokens) -> str:
    """Read the name of a collation."""
    charset, _, rest = _word(tokens).partition("_")
    return "_".join(filter(None, (_full_charset(charset), rest)))


def _word(tokens: Tokens) -> str:
    token = tokens.take()
    if token.kind not in ("word", "string", "name"):
        raise NotUnderstood(f"a name is missing before {token.text}")
    return token.value.lower()


def _full_charset(name: str) -> str:
    return "utf8mb3" if name == "utf8" else name
