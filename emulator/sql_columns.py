"""Column definitions to ColumnInfo, as TiDB v8.1 makes them."""

from __future__ import annotations

from typing import Any, Final

from ..codec.tidb.column_type import ColumnFlag, Type
from ..codec.tidb.table_info import ColumnInfo
from .sql_tokens import Tokens

_PART_OF_KEY: Final = ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL
_NO_DEFAULT: Final = 4096
_UNIQUE: Final = 4
_ZEROFILL: Final = 64

_INTEGERS: Final[dict[str, tuple[Type, int, int]]] = {
    "tinyint": (Type.TINY, 4, 3),
    "bool": (Type.TINY, 1, 1),
    "boolean": (Type.TINY, 1, 1),
    "smallint": (Type.SHORT, 6, 5),
    "mediumint": (Type.INT24, 9, 8),
    "int": (Type.LONG, 11, 10),
    "integer": (Type.LONG, 11, 10),
    "bigint": (Type.LONGLONG, 20, 20),
}
"""Type, digits to show, and those if it is unsigned."""

_TEXTS: Final[dict[str, tuple[Type, int]]] = {
    "tinytext": (Type.TINY_BLOB, 255),
    "text": (Type.BLOB, 65535),
    "mediumtext": (Type.MEDIUM_BLOB, 16777215),
    "longtext": (Type.LONG_BLOB, 4294967295),
    "tinyblob": (Type.TINY_BLOB, 255),
    "blob": (Type.BLOB, 65535),
    "mediumblob": (Type.MEDIUM_BLOB, 16777215),
    "longblob": (Type.LONG_BLOB, 4294967295),
    "json": (Type.JSON, 4294967295),
}

_CLOCKS: Final[dict[str, tuple[Type, int]]] = {
    "datetime": (Type.DATETIME, 19),
    "timestamp": (Type.TIMESTAMP, 19),
    "time": (Type.TIME, 10),
}

_STRINGS: Final = {
    "char": Type.STRING,
    "varchar": Type.VARCHAR,
    "binary": Type.STRING,
    "varbinary": Type.VARCHAR,
}

COLLATIONS: Final = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "latin1": "latin1_bin",
    "ascii": "ascii_bin",
    "binary": "binary",
    "gbk": "gbk_chinese_ci",
}
"""TiDB's default of each charset."""

_BYTES: Final = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "json")


def parse_column(tokens: Tokens, charset: str, collation: str) -> tuple[ColumnInfo, bool]:
    """A column with id and offset 0, and whether its being the key is NONCLUSTERED.

    `charset` and `collation` are its table's. Raises ValueError.
    """
    name = tokens.name()
    details = _type(tokens)
    _charset(tokens, details, charset, collation)
    _attributes(tokens, details)
    flags = details["flags"]
    if flags & ColumnFlag.NOT_NULL and details.get("default") is None and not details.get("generated"):
        details["flags"] |= _NO_DEFAULT if not flags & ColumnFlag.AUTO_INCREMENT else 0
    details.pop("textual")
    nonclustered = details.pop("nonclustered", False)
    return ColumnInfo(id=0, name=name, offset=0, **details), nonclustered


def _type(tokens: Tokens) -> dict[str, Any]:
    word = tokens.take().lower()
    details: dict[str, Any] = {"flags": 0, "textual": word not in _BYTES, "decimal": 0}
    if word in _INTEGERS:
        type_, shown, unsigned_shown = _INTEGERS[word]
        numbers, flags = _numbers(tokens), _sign(tokens)
        length = numbers[0] if numbers else unsigned_shown if flags & ColumnFlag.UNSIGNED else shown
        return details | {"type": type_, "length": length, "flags": flags, "textual": False}
    if word in ("float", "double", "real", "decimal", "numeric"):
        return details | _fraction(tokens, word) | {"textual": False}
    if word in _TEXTS:
        type_, length = _TEXTS[word]
        return details | {"type": type_, "length": length, "flags": 0 if details["textual"] else 128}
    if word in _CLOCKS:
        type_, length = _CLOCKS[word]
        scale = (_numbers(tokens) or [0])[0]
        length += scale + 1 if scale else 0
        return details | {"type": type_, "length": length, "decimal": scale, "flags": 128, "textual": False}
    if word in _STRINGS:
        length = (_numbers(tokens) or [1])[0]
        return details | {"type": _STRINGS[word], "length": length, "flags": 0 if details["textual"] else 128}
    return details | _other(tokens, word)


def _other(tokens: Tokens, word: str) -> dict[str, Any]:
    match word:
        case "date":
            return {"type": Type.DATE, "length": 10, "flags": 128, "textual": False}
        case "year":
            _numbers(tokens)
            return {"type": Type.YEAR, "length": 4, "flags": 32 | _ZEROFILL, "textual": False}
        case "bit":
            return {"type": Type.BIT, "length": (_numbers(tokens) or [1])[0], "flags": 32, "textual": False}
        case "enum" | "set":
            members = _members(tokens)
            sizes = [len(member.encode()) for member in members]
            length = max(sizes) if word == "enum" else sum(sizes) + len(members) - 1
            type_ = Type.ENUM if word == "enum" else Type.SET
            return {"type": type_, "length": length, "elements": members}
    raise ValueError(f"the emulator doesn't know the type {word}: {tokens.statement}")


def _fraction(tokens: Tokens, word: str) -> dict[str, Any]:
    numbers = _numbers(tokens)
    if word in ("decimal", "numeric"):
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]][:2]
        return {
            "type": Type.NEWDECIMAL,
            "length": precision,
            "decimal": scale,
            "flags": _sign(tokens),
        }
    length, scale = numbers if len(numbers) == 2 else (12 if word == "float" else 22, -1)
    type_ = Type.FLOAT if word == "float" else Type.DOUBLE
    return {"type": type_, "length": length, "decimal": scale, "flags": _sign(tokens)}


def _numbers(tokens: Tokens) -> list[int]:
    found: list[int] = []
    if tokens.has("("):
        found.append(tokens.number())
        while tokens.has(","):
            found.append(tokens.number())
        tokens.expect(")")
    return found


def _members(tokens: Tokens) -> tuple[str, ...]:
    tokens.expect("(")
    found = [str(tokens.take())]
    while tokens.has(","):
        found.append(str(tokens.take()))
    tokens.expect(")")
    return tuple(found)


def _sign(tokens: Tokens) -> int:
    flags = 0
    while True:
        if tokens.has("unsigned"):
            flags |= ColumnFlag.UNSIGNED
        elif tokens.has("zerofill"):
            flags |= ColumnFlag.UNSIGNED | _ZEROFILL
        elif not tokens.has("signed"):
            return flags


def parse_charset(tokens: Tokens, charset: str, collation: str) -> tuple[str, str]:
    """CHARSET and COLLATE clauses, in any order; what isn't said is as given."""
    while True:
        if tokens.has("character", "set") or tokens.has("charset"):
            tokens.has("=")
            charset = tokens.take().lower().replace("utf8mb3", "utf8")
            collation = COLLATIONS.get(charset, f"{charset}_bin")
        elif tokens.has("collate"):
            tokens.has("=")
            collation = tokens.take().lower()
            charset = collation.partition("_")[0]
        else:
            return charset, collation


def _charset(tokens: Tokens, details: dict[str, Any], charset: str, collation: str) -> None:
    if not details["textual"]:
        details |= {"charset": "binary", "collation": "binary"}
        return
    charset, collation = parse_charset(tokens, charset, collation)
    flags = details["flags"] | (128 if charset == "binary" else 0)
    details |= {"charset": charset, "collation": collation, "flags": flags}


def _attributes(tokens: Tokens, details: dict[str, Any]) -> None:
    while True:
        if tokens.has("not", "null"):
            details["flags"] |= ColumnFlag.NOT_NULL
        elif tokens.has("primary", "key") or tokens.has("key"):
            details["flags"] |= _PART_OF_KEY
            details["nonclustered"] = tokens.has("nonclustered")
            tokens.has("clustered")
        elif tokens.has("unique", "key") or tokens.has("unique"):
            details["flags"] |= _UNIQUE
        elif tokens.has("auto_increment"):
            details["flags"] |= ColumnFlag.AUTO_INCREMENT
        elif tokens.has("on", "update"):
            _moment(tokens)
            details["flags"] |= ColumnFlag.ON_UPDATE_NOW
        elif tokens.has("default"):
            _default(tokens, details)
        elif tokens.has("comment"):
            details["comment"] = str(tokens.take())
        elif tokens.has("generated", "always", "as") or tokens.has("as"):
            details["generated"] = tokens.enclosed()
            details["stored"] = tokens.has("stored")
        elif not (tokens.has("null") or tokens.has("virtual")):
            return


def _moment(tokens: Tokens) -> str:
    word = tokens.take().lower()
    if word not in ("current_timestamp", "now"):
        raise ValueError(f"the emulator doesn't know the moment {word}: {tokens.statement}")
    if tokens.has("("):
        while not tokens.has(")"):
            tokens.take()
    return "CURRENT_TIMESTAMP"


def _default(tokens: Tokens, details: dict[str, Any]) -> None:
    if tokens.has("null"):
        return
    following = tokens.next
    if following is not None and following.lower() in ("current_timestamp", "now"):
        details["default"] = _moment(tokens)
        return
    sign = "-" if tokens.has("-") else ""
    token = tokens.take()
    match token.kind:
        case "bits":
            number = int(token or "0", 2)
            raw = number.to_bytes((details["length"] + 7) // 8, "big")
            details |= {"default": raw.decode(errors="replace"), "default_bit": raw}
        case "hex":
            details["default"] = bytes.fromhex(token).decode(errors="replace")
        case "word" if token.lower() in ("true", "false"):
            details["default"] = "1" if token.lower() == "true" else "0"
        case "text" | "number":
            details["default"] = sign + token
        case _:
            raise ValueError(f"the emulator doesn't know the default {token}: {tokens.statement}")
    if details["type"] == Type.STRING and details["charset"] == "binary":
        details["default"] = details["default"].ljust(details["length"], "\0")
