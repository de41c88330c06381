"""Parsing of column definitions of CREATE TABLE, ALTER TABLE and information_schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from ...events import (
    FLOATS,
    WITH_CHARSET,
    Column,
)
from .charset import max_bytes, text_decoder
from .charset_name import accept_charset, read_charset, read_collation
from .collation import Charset
from .column_type import bytes_of_length, read_type, shown_width
from .constant import read_default, read_expression
from .details import in_parentheses
from .field import BYTES_KINDS
from .tokens import MAXDB, ORACLE, STRICT, NotUnderstood, Token, Tokens

_UNSUPPORTED: Final = {
    "WITH": "SYSTEM VERSIONING",
    "WITHOUT": "SYSTEM VERSIONING",
}
"""Attributes beyond a plain column's, with what they make of it."""
_UNKNOWN: Final[Mapping[str, str]] = {}
_MAX_VARCHAR_BYTES: Final = 0xFFFF


class Definition(Struct, frozen=True):
    """A column's definition as a statement has it, before the character set of its table is applied."""

    name: str
    details: dict[str, Any]
    """Fields of the Column as far as they are written, and sizes that depend on the character set."""
    primary: bool = False
    unique: bool = False
    auto_increment: bool = False
    expression: str = ""
    """Expression of a generated column, in parentheses."""
    strict: bool = True
    """True if the session's sql_mode was strict."""
    implicit_timestamp: bool = False
    """True for a TIMESTAMP without NULL or DEFAULT while explicit_defaults_for_timestamp=OFF. Its default
    depends on the other columns."""

    def column(self, default: Charset | None = None, collations: Mapping[str, str] = _UNKNOWN) -> Column:
        """Return the column in a table whose default character set is `default`, None if it isn't known.

        `collations` are the default collations of character sets. Raises NotUnderstood for a character set
        that isn't supported, and for a length that depends on an unknown one.
        """
        details = dict(self.details)
        _apply_charset(details, default, collations)
        _size_text(details)
        _make_text_of_what_is_too_long(details, self.strict)
        _round(details)
        if details.pop("is_json", False):
            details |= {"kind": "json", "length": 0}
        return _column(self.name, **details)


def read_definition(tokens: Tokens, *, explicit_timestamps: bool = True) -> Definition:
    """Read a column's name, type and attributes, up to a token that isn't one of them. A constant default is
    spelled as a session without special sql_mode reads it.

    `explicit_timestamps` is True if the session had explicit_defaults_for_timestamp. Raises NotUnderstood for
    a type or attribute that isn't supported.
    """
    if tokens.sql_mode & (ORACLE | MAXDB):
        raise NotUnderstood("a column while sql_mode=ORACLE or MAXDB, which have other types")
    return _read_definition(tokens.name(), tokens, explicit_timestamps)


@lru_cache(1024)  # the tables of a server have many columns in common
def parse_column(name: str, definition: str, *, of_mysql: bool = False) -> Column:
    """Return the column of a type and attributes such as "int(10) unsigned NOT NULL", as a MariaDB has it or
    as a MySQL; errors as read_definition."""
    tokens = Tokens(definition, of_mysql=of_mysql)
    parsed = _read_definition(name, tokens, True)
    if tokens.next.kind != "end":
        raise tokens.unexpected()
    return parsed.column()


def _read_definition(name: str, tokens: Tokens, explicit_timestamps: bool) -> Definition:
    details = read_type(tokens)
    if details["kind"] == "json" and tokens.of_mysql:  # a type of its own, not a text
        details |= {"charset": None, "collation": None}
    while _read_attribute(tokens, name, details):
        pass
    if "width" in details:
        details["width"] = shown_width(details, of_mysql=tokens.of_mysql)
    implicit = False
    if details["kind"] == "timestamp" and not explicit_timestamps:
        nullable = details.setdefault("nullable", False)
        implicit = not nullable and details.get("default") is None
    return Definition(
        name,
        details,
        primary=details.pop("primary", False),
        unique=details.pop("unique", False),
        auto_increment=details.pop("auto_increment", False),
        expression=details.pop("expression", ""),
        strict=bool(tokens.sql_mode & STRICT),
        implicit_timestamp=implicit,
    )


def _apply_charset(details: dict[str, Any], default: Charset | None, collations: Mapping[str, str]) -> None:
    """Apply the table's default character set to a column of text, and the default collation."""
    is_binary_collation = details.pop("bin", False)
    if details["kind"] not in WITH_CHARSET:
        return
    collation = details.get("collation")
    if takes_default := collation == "default":  # that of the character set, not of the table
        collation = details["collation"] = None
    charset = _charset_of(details)
    if charset is None and default is not None:
        charset = default.name
        collation = collation or (None if takes_default else default.collation)
    if charset is None:
        if is_binary_collation:
            raise NotUnderstood("BINARY without CHARACTER SET")
        return
    if is_binary_collation:
        collation = f"{charset}_bin"
    elif collation is not None and collation.startswith("uca1400"):
        collation = f"{charset}_{collation}"
    details["charset"], details["collation"] = charset, collation or collations.get(charset)


def _size_text(details: dict[str, Any]) -> None:
    """Apply the length of a TEXT(n): the server uses the smallest type that holds n characters."""
    characters = details.pop("characters", 0)
    if characters:
        details["length"] = bytes_of_length(characters * max_bytes(_charset_of(details) or "utf8mb4"))


def _make_text_of_what_is_too_long(details: dict[str, Any], strict: bool) -> None:
    """Convert a type that is too long to a TEXT type, as a session without strict mode does."""
    kind, characters = details["kind"], details.get("length", 0)
    if strict or kind not in ("varchar", "varbinary"):
        return
    charset = "binary" if kind == "varbinary" else _charset_of(details)
    least, most = (max_bytes(charset),) * 2 if charset else (1, 4)
    if characters * least > _MAX_VARCHAR_BYTES:
        details["kind"] = "text" if kind == "varchar" else "blob"
        details["length"] = bytes_of_length(characters * most)
    elif characters * most > _MAX_VARCHAR_BYTES:
        raise NotUnderstood(f"VARCHAR({characters}) without CHARACTER SET while sql_mode isn't strict")


def _round(details: dict[str, Any]) -> None:
    """Round the default of a FLOAT(m,d) or DOUBLE(m,d) to its d digits, as the server does."""
    default = details.get("default")
    if details["kind"] not in FLOATS or not details.get("length") or default is None:
        return
    digits = details["scale"]
    try:
        value = float(Decimal(default.strip("'")))
    except ArithmeticError:
        raise NotUnderstood(f"DEFAULT {default} of a {details['kind']} with digits") from None
    below = math.floor(value)
    details["default"] = repr(below + round((value - below) * 10.0**digits) / 10.0**digits)


def _read_attribute(tokens: Tokens, name: str, details: dict[str, object]) -> bool:
    """Read the next attribute; False if there is none."""
    if tokens.accept("UNSIGNED"):
        details["unsigned"] = True
    elif tokens.accept("ZEROFILL"):
        details |= {"unsigned": True, "zerofill": True}
    elif tokens.accept("BYTE"):  # CHAR BYTE is BINARY
        details["charset"] = "binary"
    elif tokens.accept("BINARY"):
        details["bin"] = True
    elif tokens.accept("ASCII"):
        details["charset"] = "latin1"
    elif tokens.accept("UNICODE"):
        details["charset"] = "ucs2"
    elif accept_charset(tokens):
        details["charset"] = read_charset(tokens)
    elif tokens.accept("COLLATE"):
        tokens.accept("=")
        details["collation"] = read_collation(tokens)
    elif tokens.accept("NOT", "NULL"):
        details["nullable"] = False
    elif tokens.accept("NULL"):
        details["nullable"] = True
    elif tokens.accept("SERIAL", "DEFAULT", "VALUE"):
        details |= {"auto_increment": True, "nullable": False, "unique": True}
    elif tokens.accept("DEFAULT"):
        details["default"] = read_default(tokens)
    elif tokens.accept("ON", "UPDATE"):
        details["on_update"] = read_expression(tokens)
    elif tokens.accept("AUTO_INCREMENT"):
        details |= {"auto_increment": True, "nullable": False}
    elif tokens.accept("GENERATED", "ALWAYS", "AS") or tokens.accept("AS"):
        if tokens.accept("ROW"):
            raise NotUnderstood("SYSTEM VERSIONING")
        details |= {"generated": True, "expression": in_parentheses(tokens)}
        tokens.accept_any("VIRTUAL", "STORED", "PERSISTENT")
    elif tokens.accept("UNIQUE"):
        tokens.accept("KEY")
        details["unique"] = True
    elif tokens.accept("PRIMARY", "KEY") or tokens.accept("PRIMARY") or tokens.accept("KEY"):
        details |= {"primary": True, "nullable": False}
    else:
        return _read_constraint(tokens, name, details) or _skip_attribute(tokens)
    return True


def _read_constraint(tokens: Tokens, name: str, details: dict[str, object]) -> bool:
    """Read a CHECK or REFERENCES; False if neither comes next."""
    if tokens.accept("CONSTRAINT") and not (tokens.next.kind == "word" and tokens.next.value == "CHECK"):
        tokens.name()
    if tokens.accept("CHECK"):
        start = tokens.next
        tokens.expect("(")
        tokens.skip_to_closing()
        if details["kind"] == "text" and _checks_json(tokens, start, name):
            details["is_json"] = True  # MariaDB's JSON is a LONGTEXT with such a check
        tokens.accept("NOT")
        tokens.accept("ENFORCED")
        return True
    if not tokens.accept("REFERENCES"):
        return False
    tokens.qualified_name("")
    if tokens.accept("("):
        tokens.skip_to_closing()
    if tokens.accept("MATCH"):
        tokens.take()
    while tokens.accept("ON", "DELETE") or tokens.accept("ON", "UPDATE"):
        tokens.accept_any("SET", "NO")
        tokens.take()
    return True


def _checks_json(tokens: Tokens, start: Token, name: str) -> bool:
    """Return True if the condition read since `start` is (json_valid(`name`))."""
    match [*islice(tokens.since(start), 7)]:
        case [first, function, opening, column, *closing] if [
            token.value for token in (first, function, opening)
        ] == ["(", "JSON_VALID", "("] and [token.value for token in closing] == [")", ")"]:
            return (column.value if column.kind == "name" else column.text).lower() == name.lower()
    return False


def _skip_attribute(tokens: Tokens) -> bool:
    """Skip an attribute that changes nothing of a column's values; False if none comes next. Raises
    NotUnderstood for one that does."""
    for words in _UNSUPPORTED:
        if tokens.accept(*words.split()):
            raise NotUnderstood(_UNSUPPORTED[words])
    if tokens.accept_any("SIGNED", "VISIBLE", "INVISIBLE"):
        return True
    if tokens.accept("NOT", "SECONDARY"):
        return True
    if tokens.accept("COMPRESSED"):
        if tokens.accept("="):
            tokens.take()
        return True
    if tokens.accept_any(
        "COMMENT", "COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE",
        "SRID", "REF_SYSTEM_ID",
    ):  # fmt: skip
        tokens.accept("=")
        tokens.take()
        return True
    return tokens.skip_setting()


def _charset_of(details: dict[str, Any]) -> str | None:
    charset: str | None = details.get("charset")
    collation = details.get("collation")
    if charset is None and collation is not None and not collation.startswith("uca1400"):
        charset = collation.partition("_")[0]
    return charset


def _column(name: str, **details: Any) -> Column:
    kind, charset = details["kind"], _charset_of(details)
    if charset is not None:
        details["charset"] = charset
    if kind == "json":
        charset = details.setdefault("charset", "utf8mb4")
        details.setdefault("collation", "utf8mb4_bin")
    if charset == "binary":
        if kind not in BYTES_KINDS:
            raise NotUnderstood(f"{kind} with CHARACTER SET binary")
        details |= {"kind": BYTES_KINDS[kind], "charset": None, "collation": None}
    elif charset is not None:
        try:
            text_decoder(charset)
        except LookupError:
            raise NotUnderstood(f"character set {charset}") from None
    return Column(name, **details)
