"""Parsing of constants and expressions in the definitions of columns."""

from __future__ import annotations

from typing import Final

from .tokens import Tokens, literal

_NOT_ASCII: Final = frozenset({"swe7", "ucs2", "utf16", "utf16le", "utf32"})
"""Charsets in which the bytes of a plain string literal have another meaning."""


def read_default(tokens: Tokens) -> str | None:
    """Read the value of a DEFAULT clause; None for NULL."""
    default = read_expression(tokens)
    return None if default.upper() == "NULL" else default


def read_expression(tokens: Tokens) -> str:
    """Read a constant or the time of a statement, in plain spelling; otherwise a call or an expression in
    parentheses, as written."""
    start = tokens.next
    if constant := _constant(tokens):
        return constant
    tokens.step_back_to(start)
    if tokens.accept("("):
        tokens.skip_to_closing()
    else:
        sign = tokens.accept_any("+", "-")
        if tokens.take().kind == "word":
            if tokens.next.kind == "string":  # _utf8mb4'x'
                tokens.take()
            elif tokens.accept("("):
                digits = tokens.take().text if tokens.next.kind == "number" else ""
                if not sign and tokens.accept(")"):
                    return f"{start.text}({digits})"
                tokens.skip_to_closing()
    return tokens.text_since(start)


def _constant(tokens: Tokens) -> str:
    """Read a constant; empty if the next token isn't one."""
    if tokens.accept("("):
        constant = _constant(tokens)
        return constant if tokens.accept(")") else ""
    sign = tokens.accept_any("+", "-")
    token = tokens.take()
    if token.kind == "number":
        return sign.replace("+", "") + token.value
    if sign:
        return ""
    if token.kind == "string":
        return literal(token.value)
    if token.kind != "word":
        return ""
    text = tokens.next
    if text.kind != "string":
        return token.text if token.text[:2] in ("0x", "0b") else ""
    tokens.take()
    match token.value:
        case "X" | "B" if text.start == token.end:
            return token.text + literal(text.value)
        case "DATE" | "TIME" | "TIMESTAMP":
            return f"{token.value} {literal(text.value)}"
        case "N" if text.start == token.end:
            return literal(text.value)
    # The server interprets the bytes as received in that charset.
    plain = token.value[0] == "_" and token.value[1:].lower() not in _NOT_ASCII and text.value.isascii()
    return literal(text.value) if plain else ""
