"""Parsing of column definitions of CREATE TABLE, ALTER TABLE and information_schema."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final, get_args

from ...events import Column, Kind
from .charset import max_bytes, text_decoder
from .field import BYTES_KINDS
from .tokens import REAL_AS_FLOAT, STRICT, NotUnderstood, Tokens, literal

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_TYPES: Final[dict[str, Kind]] = {
    **{kind.upper(): kind for kind in KINDS},
    "BOOL": "tinyint", "BOOLEAN": "tinyint", "INT1": "tinyint", "INT2": "smallint",
    "INT3": "mediumint", "MIDDLEINT": "mediumint", "INTEGER": "int", "INT4": "int", "INT8": "bigint",
    "DEC": "decimal", "NUMERIC": "decimal", "FIXED": "decimal", "FLOAT4": "float", "FLOAT8": "double",
    "REAL": "double", "CHARACTER": "char", "VARCHARACTER": "varchar", "NCHAR": "char",
    "NVARCHAR": "varchar", "TINYTEXT": "text", "MEDIUMTEXT": "text", "LONGTEXT": "text",
    "LONG": "text", "TINYBLOB": "blob", "MEDIUMBLOB": "blob", "LONGBLOB": "blob",
    "POINT": "geometry", "LINESTRING": "geometry", "POLYGON": "geometry", "MULTIPOINT": "geometry",
    "MULTILINESTRING": "geometry", "MULTIPOLYGON": "geometry", "GEOMETRYCOLLECTION": "geometry",
    "GEOMCOLLECTION": "geometry",
}  # fmt: skip
_LENGTH_BYTES: Final = {"TINY": 1, "LONG": 4, "MEDI": 3, "TEXT": 2, "BLOB": 2}
"""Bytes of the length, by the first letters of a text's or blob's type."""

_REFUSED: Final = frozenset({
    "AUTO_INCREMENT", "PRIMARY", "UNIQUE", "KEY", "REFERENCES", "CHECK", "CONSTRAINT", "GENERATED", "AS",
    "COMPRESSED", "INVISIBLE", "WITH", "WITHOUT", "BINARY", "ASCII", "UNICODE", "REF_SYSTEM_ID",
})  # fmt: skip
"""Attributes beyond a plain column's, and old ways to name a charset."""


_MAX_VARCHAR_BYTES: Final = 0xFFFF
_VECTOR_DIMENSIONS: Final = 2048
"""Dimensions of a VECTOR whose definition doesn't say them."""
_WIDE_CHARSETS: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Charsets in which the bytes of a plain string literal have another meaning."""


def read_column(tokens: Tokens, *, explicit_timestamps: bool = True) -> Column:
    """Read a column's name, type and attributes, up to a token that isn't one of them. A constant default is
    spelled as a session without special sql_mode reads it.

    `explicit_timestamps` is True if the session had explicit_defaults_for_timestamp. Raises NotUnderstood for
    a type that isn't supported and for attributes other than the sign, charset, collation, NULL, DEFAULT, ON
    UPDATE and COMMENT.
    """
    return _read_column(tokens.name(), tokens, explicit_timestamps)


def parse_column(name: str, definition: str) -> Column:
    """Return the column of a type and attributes such as "int(10) unsigned NOT NULL"; errors as
    read_column."""
    tokens = Tokens(definition)
    column = _read_column(name, tokens, True)
    if tokens.next.kind != "end":
        raise tokens.unexpected()
    return column


def _read_column(name: str, tokens: Tokens, explicit_timestamps: bool) -> Column:
    details = _read_type(tokens)
    while _read_attribute(tokens, details):
        pass
    token = tokens.next
    if token.kind == "word" and token.value in _REFUSED:
        raise NotUnderstood(token.value)
    if details["kind"] == "timestamp" and not explicit_timestamps:
        _make_explicit(details)
    _make_text_of_what_is_too_long(details, bool(tokens.sql_mode & STRICT))
    _round(details)
    return _column(name, **details)


def _make_explicit(details: dict[str, Any]) -> None:
    """Apply explicit_defaults_for_timestamp=OFF: a TIMESTAMP is NOT NULL unless it says NULL. Its implicit
    default depends on the other columns."""
    nullable = details.setdefault("nullable", False)
    if not nullable and details.get("default") is None:
        raise NotUnderstood("a TIMESTAMP without NULL or DEFAULT while explicit_defaults_for_timestamp=OFF")


def _make_text_of_what_is_too_long(details: dict[str, Any], strict: bool) -> None:
    """Convert a type that is too long to a TEXT type, as a session without strict mode does."""
    kind, characters = details["kind"], details.get("length", 0)
    if strict or kind not in ("varchar", "varbinary"):
        return
    charset = "binary" if kind == "varbinary" else _charset_of(details)
    least, most = (max_bytes(charset),) * 2 if charset else (1, 4)
    if characters * least > _MAX_VARCHAR_BYTES:
        details["kind"] = "text" if kind == "varchar" else "blob"
        details["length"] = _bytes_of_length(characters * most)
    elif characters * most > _MAX_VARCHAR_BYTES:
        raise NotUnderstood(f"VARCHAR({characters}) without CHARACTER SET while sql_mode isn't strict")


def _bytes_of_length(most_bytes: int) -> int:
    return (most_bytes.bit_length() + 7) // 8


def _round(details: dict[str, Any]) -> None:
    """Round the default of a FLOAT(m,d) or DOUBLE(m,d) to its d digits, as the server does."""
    digits, default = details.pop("digits", None), details.get("default")
    if digits is None or default is None:
        return
    try:
        value = float(Decimal(default.strip("'")))
    except ArithmeticError:
        raise NotUnderstood(f"DEFAULT {default} of a {details['kind']} with digits") from None
    below = math.floor(value)
    details["default"] = repr(below + round((value - below) * 10.0**digits) / 10.0**digits)


def _read_type(tokens: Tokens) -> dict[str, Any]:
    national = tokens.accept("NATIONAL")
    token = tokens.take()
    kind = _TYPES.get(token.value) if token.kind == "word" else None
    if kind is None:
        raise NotUnderstood(f"type {token.text}")
    details: dict[str, Any] = {"kind": kind}
    if national or token.value in ("NCHAR", "NVARCHAR"):
        details["charset"] = "utf8mb3"
    match token.value:
        case "LONG":  # LONG VARCHAR and LONG VARBINARY are MEDIUMTEXT and MEDIUMBLOB
            if tokens.accept("VARBINARY"):
                details["kind"] = "blob"
            else:
                tokens.accept("VARCHAR")
            details["length"] = 3
            return details
        case "CHAR" | "CHARACTER" | "NCHAR" if tokens.accept("VARYING"):
            details["kind"] = "varchar"
        case "DOUBLE":
            tokens.accept("PRECISION")
        case "REAL" if tokens.sql_mode & REAL_AS_FLOAT:
            details["kind"] = "float"
    _read_size(tokens, token.value, details)
    return details


def _read_size(tokens: Tokens, word: str, details: dict[str, Any]) -> None:
    """Read the parentheses after a type, or apply the type's default size."""
    kind = details["kind"]
    if kind in ("enum", "set"):
        tokens.expect("(")
        members = [tokens.string()]
        while tokens.accept(","):
            members.append(tokens.string())
        tokens.expect(")")
        details["members"] = tuple(member.rstrip(" ") for member in members)
        return
    numbers = []
    if tokens.accept("("):
        numbers.append(tokens.number())
        if tokens.accept(","):
            numbers.append(tokens.number())
        tokens.expect(")")
    first = numbers[0] if numbers else 0
    match kind:
        case "decimal":
            details["length"], details["scale"] = first or 10, numbers[1] if len(numbers) > 1 else 0
        case "float" if len(numbers) == 1 and first > 24:
            details["kind"] = "double"
        case "float" | "double" if len(numbers) == 2:
            details["digits"] = numbers[1]
        case "char" | "binary" | "bit":
            details["length"] = first if numbers else 1
        case "varchar" | "varbinary":
            details["length"] = first
        case "vector":
            details["length"] = first if numbers else _VECTOR_DIMENSIONS
        case "time" | "datetime" | "timestamp":
            details["scale"] = first
        case "text" | "blob":
            # With a length the server uses the smallest type that holds that many characters.
            most = first * (max_bytes("utf8mb4") if kind == "text" else 1)
            details["length"] = _bytes_of_length(most) or _LENGTH_BYTES[word[:4]]
        case "year" if first == 2:
            raise NotUnderstood("YEAR(2)")


def _read_attribute(tokens: Tokens, details: dict[str, Any]) -> bool:
    """Read the next attribute; False if there is none."""
    if tokens.accept("UNSIGNED") or tokens.accept("ZEROFILL"):
        details["unsigned"] = True
    elif tokens.accept("SIGNED"):
        pass
    elif tokens.accept("BYTE"):  # CHAR BYTE is BINARY
        details["charset"] = "binary"
    elif tokens.accept("CHARACTER", "SET") or tokens.accept("CHARSET"):
        tokens.accept("=")
        details["charset"] = _full_charset(_word(tokens))
    elif tokens.accept("COLLATE"):
        tokens.accept("=")
        charset, _, rest = _word(tokens).partition("_")
        details["collation"] = "_".join(filter(None, (_full_charset(charset), rest)))
    elif tokens.accept("NOT", "NULL"):
        details["nullable"] = False
    elif tokens.accept("NULL"):
        details["nullable"] = True
    elif tokens.accept("DEFAULT"):
        default = _expression(tokens)
        details["default"] = None if default.upper() == "NULL" else default
    elif tokens.accept("ON", "UPDATE"):
        details["on_update"] = _expression(tokens)
    elif tokens.accept("COMMENT"):
        tokens.string()
    else:
        return False
    return True


def _expression(tokens: Tokens) -> str:
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
    plain = token.value[0] == "_" and token.value[1:].lower() not in _WIDE_CHARSETS and text.value.isascii()
    return literal(text.value) if plain else ""


def _word(tokens: Tokens) -> str:
    token = tokens.take()
    if token.kind not in ("word", "string", "name"):
        raise NotUnderstood(f"a name is missing before {token.text}")
    return token.value.lower()


def _full_charset(name: str) -> str:
    return "utf8mb3" if name == "utf8" else name


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
        charset = details["charset"] = "utf8mb4"
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
