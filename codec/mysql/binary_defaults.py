"""Constant defaults in SHOW CREATE TABLE, byte by byte."""

from __future__ import annotations

from .details import is_element
from .tokens import Tokens


def constant_defaults(statement: str) -> dict[str, bytes]:
    """Return the default of each column that has a string or a hexadecimal number as its default.

    `statement` is as the server prints it, in which MariaDB has the bytes of a binary default and MySQL its
    digits; bytes that aren't UTF-8 are surrogates. Raises NotUnderstood.
    """
    tokens = Tokens(statement)
    tokens.expect("CREATE")
    tokens.expect("TABLE")
    tokens.name()
    tokens.expect("(")
    defaults: dict[str, bytes] = {}
    while not is_element(tokens):
        name = tokens.name()
        value = _default(tokens)
        if value is not None:
            defaults[name] = value
        if not tokens.accept(","):
            break
    return defaults


def _default(tokens: Tokens) -> bytes | None:
    """Skip a column's definition, and return its default."""
    value = None
    while tokens.next.kind != "end" and not (tokens.next.kind == "mark" and tokens.next.value in ",)"):
        if tokens.accept("("):
            tokens.skip_to_closing()
        elif tokens.accept("DEFAULT"):
            if tokens.next.kind == "string":
                value = tokens.string().encode(errors="surrogateescape")
            elif tokens.next.text.startswith("0x"):
                value = bytes.fromhex(tokens.take().text[2:])
        else:
            tokens.take()
    return value
