"""Expressions of generated columns that every server of the source's kind computes alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...codec.mysql.tokens import Token, Tokens
from ...events import Column

_OPERANDS: Final = {
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "char", "varchar", "text", "binary",
    "varbinary", "blob", "date", "time", "datetime", "year", "enum", "set", "json",
}  # fmt: skip
"""Kinds of columns to compute with. An unsigned one may have been ZEROFILL, which its text shows."""
_INEXACT: Final = {"float", "double", "timestamp"}
"""Kinds of results that depend on digits that a Column doesn't have, or on the session's time zone."""
_FUNCTIONS: Final = {
    "CONCAT", "COALESCE", "IFNULL", "IF", "ABS", "SIGN", "MOD", "FLOOR", "CEIL", "CEILING", "ROUND", "LENGTH",
    "OCTET_LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "LEFT", "RIGHT", "SUBSTRING", "SUBSTR", "REVERSE",
    "MD5", "SHA1", "SHA", "SHA2", "CRC32", "HEX", "YEAR", "MONTH", "DAY", "DAYOFMONTH", "HOUR", "MINUTE",
    "SECOND", "DATE",
}  # fmt: skip
"""Functions whose value depends on their arguments only, in every version and session."""
_OF_COLLATION: Final = {"LOWER", "UPPER", "LCASE", "UCASE"}
"""Functions that depend on the collation too, which is known of a column."""
_OF_MYSQL: Final = {"JSON_EXTRACT", "JSON_UNQUOTE", "JSON_VALUE"}
"""Functions whose text isn't the same in all versions of MariaDB."""
_WORDS: Final = {
    "AND", "OR", "XOR", "IS", "NULL", "TRUE", "FALSE", "DIV", "MOD", "CASE", "WHEN", "THEN", "ELSE", "END",
}  # fmt: skip
_COMPARISONS: Final = {"<", ">", "=", "CASE"}
"""Tokens that compare; with a literal, by the session's collation, which isn't known."""
_MARKS: Final = {*"()+-*%,!&", *_COMPARISONS}


def unknown_to_server(
    expression: str, column: Column, columns: Mapping[str, Column | None], *, is_mariadb: bool
) -> str:
    """Return what the values of a generated column depend on beyond the other columns and the sql_mode of the
    statement; empty if on nothing. `columns` are those of its table by name in lower case."""
    if column.kind in _INEXACT:
        return f"the type {column.kind}"
    tokens = Tokens(expression)
    functions = _FUNCTIONS if is_mariadb else _FUNCTIONS | _OF_MYSQL
    strings = comparisons = ""
    while tokens.next.kind != "end":
        token = tokens.take()
        match token.kind:
            case "string":
                strings = token.text
                known = token.value.isascii()
            case "number":
                known = "E" not in token.text.upper()
            case "mark" if token.value == "-" and not is_mariadb and tokens.accept(">"):  # -> and ->>
                tokens.accept(">")
                known = tokens.next.kind == "string"
            case "mark":
                known = token.value in _MARKS
            case "word" if token.end == tokens.next.start and tokens.accept("("):
                known = token.value in functions
                if token.value in _OF_COLLATION:
                    known = _is_operand(tokens.take(), columns) and tokens.next.value == ")"
            case _:
                is_word = token.kind == "word" and token.value in _WORDS
                known = is_word != _is_operand(token, columns)
        if not known:
            return token.text
        if token.value in _COMPARISONS and token.kind != "string":
            comparisons = token.text
    return f"a comparison with {strings}" if strings and comparisons else ""


def _is_operand(token: Token, columns: Mapping[str, Column | None]) -> bool:
    """Return True if the token names a column with which the server computes as the source does."""
    name = token.value if token.kind == "name" else token.text
    column = columns.get(name.lower()) if token.kind in ("word", "name") else None
    return column is not None and column.kind in _OPERANDS and not column.unsigned
