"""Names, values and rows as text for PostgreSQL.

Literals are for a session with standard_conforming_strings, in which only quotes must be doubled; lines are
for COPY in CSV format, where an unquoted empty field is NULL. Functions that render rows are generated for
each table, without dispatch on types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias, assert_never

from ...codec.row_code import compile_rows
from ...errors import SinkError
from ...events import AS_BYTES, Column, Row
from .types import INTEGERS, TEXTS

Render: TypeAlias = Callable[[Iterable[Row]], list[str]]

NAME_BYTES: Final = 63
"""Maximum length of a name; PostgreSQL cuts off the rest."""

LARGE: Final = 1 << 20
"""Length from which on the text of a value is made in pieces."""
_PIECE: Final = 1 << 17
LONG: Final = frozenset({"text", "json", "blob", "geometry"})
"""Kinds of columns whose values may be large."""

_LITERAL: Final[dict[str, object]] = {"Q": "'", "QQ": "''", "N": "NULL", "X": "\\x"}
_CSV: Final[dict[str, object]] = {"Q": '"', "QQ": '""', "N": "", "X": "\\x"}


def name(identifier: str, of: str = "") -> str:
    """Return a quoted name. Raises SinkError if PostgreSQL would cut it off; `of` is what has the name."""
    if not fits(identifier):
        raise SinkError(
            f"{of or identifier}: the name {identifier!r} has {len(identifier.encode())} bytes, and "
            f"PostgreSQL would cut it off after {NAME_BYTES}: give it a shorter name in the source"
        )
    return '"' + identifier.replace('"', '""') + '"'


def fits(identifier: str) -> bool:
    return len(identifier.encode()) <= NAME_BYTES


def same(column: Column, one: str, other: str) -> str:
    """Return a condition that is true only for the same value, NULL included."""
    if column.kind == "json":  # a document is its text; the type has no equality
        one, other = f"({one})::text", f"({other})::text"
    return f"{one} IS NOT DISTINCT FROM {other}"


def compile_values(columns: tuple[Column, ...]) -> Render:
    """Return a function that renders each row as "(1,'a',NULL)"."""
    return _compile(columns, f"({_list(columns, range(len(columns)))})", _LITERAL)


def compile_lines(columns: tuple[Column, ...]) -> Render:
    """Return a function that renders each row as a line of CSV, without its end."""
    return _compile(columns, _list(columns, range(len(columns))), _CSV)


def line_pieces(columns: tuple[Column, ...], row: Row) -> Iterator[str]:
    """Yield the line of a row, with its end: a large value a piece at a time, and not as a whole."""
    end = ""
    for column, value in zip(columns, row, strict=True):
        yield end
        end = ","
        if column.kind in LONG and value is not None and len(value) >= LARGE:
            is_bytes = isinstance(value, bytes)
            yield '"\\x' if is_bytes else '"'
            for start in range(0, len(value), _PIECE):
                piece = value[start : start + _PIECE]
                yield piece.hex() if is_bytes else piece.replace('"', '""')
            yield '"'
        else:
            yield from compile_lines((column,))([(value,)])
    yield "\n"


def compile_list(columns: tuple[Column, ...], index: Iterable[int]) -> Render:
    """Return a function that renders the columns in `index` of each row as "1,'a'"."""
    return _compile(columns, _list(columns, index), _LITERAL)


def compile_set(columns: tuple[Column, ...], index: Iterable[int]) -> Render:
    """Return a function that renders the columns in `index` of each row as '"a"=1,"b"=NULL'."""
    names = {f"NAME{i}": f"{name(columns[i].name)}=" for i in index}
    template = ",".join(f"{{{key}}}{_field(columns[int(key[4:])], f'c{key[4:]}')}" for key in names)
    return _compile(columns, template, _LITERAL | names)


def compile_where(columns: tuple[Column, ...], index: Iterable[int]) -> Render:
    """Return a function that renders the condition that the columns in `index` are exactly as in each row."""
    scope, parts = dict(_LITERAL), []
    for i in index:
        column, var = columns[i], f"c{i}"
        scope[f"NULL{i}"] = f"{name(column.name)} IS NULL"
        scope[f"SAME{i}"] = f"{name(column.name)}{'::text' if column.kind == 'json' else ''}="
        parts.append(f"{{NULL{i} if {var} is None else SAME{i}+{_text(column, var)}}}")
    return _compile(columns, " AND ".join(parts), scope)


def compile_comparison(columns: tuple[Column, ...]) -> Render:
    """Return a function that renders a list for a SELECT: for each column its value in the table, and true if
    that is exactly the row's."""
    scope, parts = dict(_LITERAL), []
    for i, column in enumerate(columns):
        quoted_name = name(column.name)
        as_text = f"{quoted_name}::text"
        shown = quoted_name if column.kind in INTEGERS | TEXTS - {"json"} else as_text
        compared = as_text if column.kind == "json" else quoted_name
        scope[f"SHOWN{i}"] = f"{shown},{compared} IS NOT DISTINCT FROM "
        parts.append(f"{{SHOWN{i}}}{_field(column, f'c{i}')}")
    return _compile(columns, ",".join(parts), scope)


def literal(column: Column, value: object) -> str:
    (text,) = compile_list((column,), [0])([(value,)])
    return text


def _compile(columns: tuple[Column, ...], template: str, scope: dict[str, object]) -> Render:
    return compile_rows(len(columns), f'f"""{template}"""', scope)


def _list(columns: tuple[Column, ...], index: Iterable[int]) -> str:
    return ",".join(_field(columns[i], f"c{i}") for i in index)


def _field(column: Column, var: str) -> str:
    """Return the part of a template for a value that may be NULL."""
    return f"{{N if {var} is None else {_text(column, var)}}}"


def _text(column: Column, var: str) -> str:
    """Return a Python expression for a value's text; `var` isn't None."""
    kind = column.kind
    if kind in INTEGERS:
        return f"str({var})"
    if kind in TEXTS:
        return f"Q+{var}.replace(Q,QQ)+Q"
    if kind in AS_BYTES:
        return f"Q+X+{var}.hex()+Q"
    match kind:
        case "decimal":
            return f"str({var})"
        case "float" | "double":
            return f"Q+repr({var})+Q"
        case "bit":
            return f"Q+format({var},'0{column.length}b')+Q"
        case "time":
            return f"Q+time_text({var},{column.scale})+Q"
        case "datetime" if not column.scale:
            return f"Q+str({var})+Q"
        case "datetime" | "timestamp":  # in UTC, as the session is
            return f"Q+datetime_text({var},{column.scale})+Q"
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "char" | "varchar" | "text"
            | "binary" | "varbinary" | "blob" | "date" | "year" | "enum" | "set" | "json" | "uuid"
            | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return f"Q+str({var})+Q"
        case _:
            assert_never(kind)


def hash_of(columns: tuple[Column, ...], values: Iterable[str]) -> str:
    """Return an expression that is equal for rows of equal columns, by `values` as SQL."""
    parts = [
        f"{value}::text" if column.kind in ("bit", "json") else value
        for column, value in zip(columns, values, strict=True)
    ]
    return f"hash_record_extended(ROW({','.join(parts)}),0)"
