"""Column definitions to ColumnInfo, as TiDB v8.1 makes them."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from ...codec.tidb.column_type import ColumnFlag, Type
from ...codec.tidb.table_info import ColumnInfo
from .column_types import parse_type
from .tokens import Tokens

_PART_OF_KEY: Final = ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL
_NO_DEFAULT: Final = 4096
_UNIQUE: Final = 4

COLLATIONS: Final = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "latin1": "latin1_bin",
    "ascii": "ascii_bin",
    "binary": "binary",
    "gbk": "gbk_chinese_ci",
}
"""TiDB's default of each charset."""


def parse_column(tokens: Tokens, charset: str, collation: str) -> tuple[ColumnInfo, bool]:
    """Parse a column; its id and offset are 0. Also return True if its key is NONCLUSTERED.

    `charset` and `collation` are the table's. Raises ValueError.
    """
    name = tokens.name()
    details = parse_type(tokens)
    _charset(tokens, details, charset, collation)
    _attributes(tokens, details)
    flags = details["flags"]
    if flags & ColumnFlag.NOT_NULL and details.get("default") is None and not details.get("generated"):
        details["flags"] |= _NO_DEFAULT if not flags & ColumnFlag.AUTO_INCREMENT else 0
    details.pop("textual")
    nonclustered = details.pop("nonclustered", False)
    return ColumnInfo(id=0, name=name, offset=0, **details), nonclustered


def parse_charset(tokens: Tokens, charset: str, collation: str) -> tuple[str, str]:
    """Parse CHARSET and COLLATE clauses in any order; missing ones keep the given values."""
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


def with_default(tokens: Tokens, column: ColumnInfo) -> ColumnInfo:
    """Parse DEFAULT x; return the column with it. Raises ValueError."""
    tokens.expect("default")
    details: dict[str, object] = {"type": column.type, "charset": column.charset, "length": column.length}
    _default(tokens, details)
    return replace(column, default=details.get("default"), default_bit=details.get("default_bit"))


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
        case "string" | "number":
            details["default"] = sign + token
        case _:
            raise ValueError(f"the emulator doesn't know the default {token}: {tokens.statement}")
    if details["type"] == Type.STRING and details["charset"] == "binary":
        details["default"] = details["default"].ljust(details["length"], "\0")
