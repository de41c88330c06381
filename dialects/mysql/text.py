"""Values and column definitions as SQL text of MySQL and MariaDB.

Text is for a session with NO_BACKSLASH_ESCAPES, in which only quotes must be doubled. Functions that render
rows are generated for each table: one f-string per row, without dispatch on types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, assert_never

from ...codec.row_code import compile_rows
from ...events import (
    AS_BYTES,
    AS_INT,
    FLOATS,
    Column,
    Row,
    Table,
    not_a_member,
)
from .float_text import rounded_text
from .large import LARGE, Value

Render: TypeAlias = Callable[[Iterable[Row]], list[str]]
Large: TypeAlias = Callable[[Value], str]

_TEXTS = {"char", "varchar", "text", "enum", "set", "json"}
_CONVERTED = {"bit": "CAST({} AS UNSIGNED)", **dict.fromkeys(AS_BYTES, "UNHEX({})")}
"""Expressions of values that aren't stored as a line has them."""
_LENGTHS = ("", "tiny", "", "medium", "long")
_MAX_KEY_BYTES = 3072
_SCOPE = {"Q": "'", "QQ": "''", "N": "NULL", "rounded_text": rounded_text}
_HASHED = 64
"""Number of characters or bytes of a long value that count for a row's hash."""


def name(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def compile_values(table: Table, large: Large | None = None) -> Render:
    """Return a function that renders each row as "(1,'a',NULL)".

    `large` renders values of at least LARGE; without it they are rendered as others.
    """
    parts = [_nullable(c, f"c{i}", _stored(c, f"c{i}", large)) for i, c in enumerate(table.columns)]
    return _compile(table, f"({','.join(parts)})", large)


def compile_lines(table: Table) -> Render:
    """Return a function that renders each row as a line for `load_lines`: "1,'a',NULL"."""
    parts = [_nullable(c, f"c{i}", _field(c, f"c{i}")) for i, c in enumerate(table.columns)]
    return _compile(table, ",".join(parts) + "\\n")


def load_lines(table: Table, qualified_name: str) -> str:
    """Return the statement that inserts lines of rows."""
    fields, assignments = [], []
    for i, column in enumerate(table.columns):
        if column.kind in _CONVERTED:
            assignments.append(f"{name(column.name)}={_CONVERTED[column.kind].format(f'@c{i}')}")
        fields.append(f"@c{i}" if column.kind in _CONVERTED else name(column.name))
    return (
        f"LOAD DATA LOCAL INFILE 'rows' INTO TABLE {qualified_name} CHARACTER SET utf8mb4 "
        "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '''' ESCAPED BY '' "
        f"({','.join(fields)}){' SET ' if assignments else ''}{','.join(assignments)}"
    )


def compile_set(table: Table, index: Iterable[int], large: Large | None = None) -> Render:
    """Return a function that renders the columns in `index` of each row as "`a`=1,`b`=NULL". `large`: see
    compile_values."""
    columns = table.columns
    parts = [
        f"{_name(columns[i])}={_nullable(columns[i], f'c{i}', _stored(columns[i], f'c{i}', large))}"
        for i in index
    ]
    return _compile(table, ",".join(parts), large)


def compile_key(table: Table) -> Render:
    """Return a function that renders each row's key for an IN list: "1", or "(1,'a')"."""
    parts = [_operand(table.columns[i], f"c{i}") for i in table.key]
    return _compile(table, parts[0] if len(parts) == 1 else f"({','.join(parts)})")


def compile_where(table: Table, *, whole: bool = False, native_json: bool = False) -> Render:
    """Return a function that renders the condition for each row: its key, or every byte of every column.

    With `whole` it is both. With `native_json` the server prints documents in its own way, as MySQL does.
    """
    parts = [f"{_name(table.columns[i])}={_operand(table.columns[i], f'c{i}')}" for i in table.key]
    if whole or not parts:
        parts += [_same(c, f"c{i}", native_json) for i, c in enumerate(table.columns)]
    return _compile(table, " AND ".join(parts))


def compile_comparison(table: Table, *, native_json: bool = False) -> Render:
    """Return a function that renders a list for a SELECT: for each column of each row its value in the table,
    and 1 if that is exactly the row's."""
    parts = [f"{_name(c)},{_same(c, f'c{i}', native_json)}" for i, c in enumerate(table.columns)]
    return _compile(table, ",".join(parts))


def key_columns(table: Table) -> str:
    """Return the left side of an IN list of keys."""
    names = ",".join(name(table.columns[i].name) for i in table.key)
    return names if len(table.key) == 1 else f"({names})"


def is_wide(column: Column) -> bool:
    """Return True if values of the column may be large."""
    return column.kind == "json" or (column.kind in ("text", "blob", "geometry") and column.length != 1)


def _stored(column: Column, var: str, large: Large | None = None) -> str:
    """Return a Python expression for the text of a value to store, which may be large; it isn't None."""
    if column.kind in FLOATS and column.length:
        return f"Q+rounded_text({var},{column.length},{column.scale},{column.kind == 'float'})+Q"
    plain = _value(column, var)
    return f"({plain} if len({var})<{LARGE} else large({var}))" if large and is_wide(column) else plain


def _compile(table: Table, template: str, large: Large | None = None) -> Render:
    """Return a function that fills in the template of an f-string for each row."""
    scope = {**_SCOPE, "large": large}
    return compile_rows(len(table.columns), f'f"""{template}"""', scope)


def _name(column: Column) -> str:
    """Return a column's name inside the template of an f-string."""
    quoted = name(column.name).replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r")
    return quoted.replace("{", "{{").replace("}", "}}")


def _nullable(column: Column, var: str, expression: str) -> str:
    return f"{{N if {var} is None else {expression}}}" if column.nullable else f"{{{expression}}}"


def _value(column: Column, var: str) -> str:
    """Return a Python expression for the text of a value; `var` isn't None."""
    kind = column.kind
    if kind in AS_INT:
        return var
    if kind == "enum" and "" in column.members:
        # A server would take the digits of not_a_member as an index.
        invalid = "?" * (1 + max(map(len, column.members)))
        var = f"({invalid!r} if {var}=={not_a_member(column.members)!r} else {var})"
    if kind in _TEXTS:
        return f"Q+{var}.replace(Q,QQ)+Q"
    if kind in AS_BYTES:
        return f"'x'+Q+{var}.hex()+Q"
    if kind == "decimal":  # quoted: str() may have an exponent, which would make a literal a double
        return f"Q+str({var})+Q"
    if kind in FLOATS:
        return f"Q+repr({var})+Q"
    if kind == "time":
        return f"Q+time_text({var})+Q"
    if kind == "datetime":  # one that Python can't represent is a str
        return f"Q+({var}.isoformat(' ') if isinstance({var},date) else {var})+Q"
    if kind == "timestamp":  # in UTC, as the session is
        return f"Q+({var}.isoformat(' ').removesuffix('+00:00') if isinstance({var},date) else {var})+Q"
    return f"Q+str({var})+Q"


def _field(column: Column, var: str) -> str:
    """Return a Python expression for the text of a value in a line; `var` isn't None."""
    if column.kind in AS_BYTES:
        return f"{var}.hex()"
    if column.kind == "year":  # 0 would be the year 2000
        return f"f'{{{var}:04}}'"
    return _stored(column, var)


def _printed(column: Column, column_name: str) -> str:
    """Return an expression for the text of an ENUM column; see not_a_member."""
    if "" not in column.members:
        return column_name
    return f"IF({column_name}+0=0,'{not_a_member(column.members)}',{column_name})"


def _operand(column: Column, var: str) -> str:
    """Return a template's text for a value to compare with its column; not for None."""
    # MySQL compares a decimal with a string as doubles.
    return f"{{{var}:f}}" if column.kind == "decimal" else f"{{{_value(column, var)}}}"


def _same(column: Column, var: str, native_json: bool) -> str:
    """Return a template's condition that is true only for exactly this value, NULL included."""
    column_name = _name(column)
    if column.kind == "json" and native_json:
        value = f"CAST({{N if {var} is None else {_value(column, var)}}} AS JSON)"
        printed = [f"CAST(CONVERT({one} USING utf8mb4) AS BINARY)" for one in (column_name, value)]
        return "<=>".join(printed)
    if column.kind in _TEXTS:  # case, accents and trailing spaces count
        if column.kind == "enum":
            column_name = _printed(column, column_name)
        return (
            f"CAST(CONVERT({column_name} USING utf8mb4) AS BINARY)"
            f"<=>{{N if {var} is None else 'x'+Q+{var}.encode().hex()+Q}}"
        )
    if column.kind == "decimal":
        return f"{column_name}<=>{{N if {var} is None else f'{{{var}:f}}'}}"
    return f"{column_name}<=>{{N if {var} is None else {_value(column, var)}}}"


def same_columns(column: Column, table: str, other: str) -> str:
    """Return a condition that is true only for exactly the same value in two tables, NULL included."""
    one, two = f"{table}.{name(column.name)}", f"{other}.{name(column.name)}"
    if column.kind == "enum":
        one, two = f"{one}+0", f"{two}+0"
    elif column.kind in _TEXTS:
        one, two = (
            f"CAST(CONVERT({one} USING utf8mb4) AS BINARY)",
            f"CAST(CONVERT({two} USING utf8mb4) AS BINARY)",
        )
    return f"{one}<=>{two}"


def hash_of(columns: Iterable[Column], table: str) -> str:
    """Return an expression that is equal for rows of equal columns."""
    parts = []
    for column in columns:
        value = f"{table}.{name(column.name)}"
        if column.kind in _TEXTS:
            value = f"CONVERT(LEFT({value},{_HASHED}) USING utf8mb4)"
        elif column.kind == "blob":
            value = f"LEFT({value},{_HASHED})"
        parts.append(f"CAST({value} AS BINARY)")
    return f"CRC32(CONCAT_WS(',',{','.join(parts)}))"


# --- definitions, for a session in which backslash escapes -----------------------------------------


def create_table(
    table: Table,
    qualified_name: str,
    *,
    end_of: Callable[[Column], str] = lambda _: "",
    more: Iterable[str] = (),
    has_primary: bool = True,
) -> str:
    """Return the CREATE TABLE; `end_of` returns the end of a column's definition, `more` are elements after
    the key, which is left out without `has_primary`."""
    lines = [f"  {define(column)}{end_of(column)}" for column in table.columns]
    if table.key and has_primary:
        columns = [table.columns[index] for index in table.key]
        parts = ", ".join(key_part(column.name, column, len(columns)) for column in columns)
        lines.append(f"  PRIMARY KEY ({parts})")
    lines += [f"  {line}" for line in more]
    options = "ENGINE=InnoDB"
    if table.charset:
        options += f" DEFAULT CHARSET={table.charset}"
    if table.collation:
        options += f" COLLATE={table.collation}"
    return f"CREATE TABLE {qualified_name} (\n" + ",\n".join(lines) + f"\n) {options}"


def define(column: Column) -> str:
    """Return a column's definition with its default, as in CREATE TABLE."""
    text = f"{name(column.name)} {type_text(column)}"
    if column.charset and column.kind in _TEXTS - {"json"}:
        text += f" CHARACTER SET {column.charset}"
        if column.collation:
            text += f" COLLATE {column.collation}"
    text += " NULL" if column.nullable else " NOT NULL"
    if column.default is not None:
        text += f" DEFAULT {column.default}"
    if column.on_update is not None:
        text += f" ON UPDATE {column.on_update}"
    return text


def type_text(column: Column) -> str:
    """Return the type as information_schema prints it, without default display widths of integers."""
    kind, length, scale = column.kind, column.length, column.scale
    signs = " unsigned" * column.unsigned + " zerofill" * column.zerofill
    match kind:
        case "decimal":
            return f"decimal({length},{scale}){signs}"
        case "float" | "double":
            return (f"{kind}({length},{scale})" if length else kind) + signs
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return (f"{kind}({column.width})" if column.width else kind) + signs
        case "geometry":
            return column.subtype or kind
        case "bit" | "char" | "varchar" | "binary" | "varbinary" | "vector":
            return f"{kind}({length})"
        case "text" | "blob":
            return _LENGTHS[length] + kind
        case "time" | "datetime" | "timestamp":
            return f"{kind}({scale})" if scale else kind
        case "enum" | "set":
            return f"{kind}({','.join(escaped(member) for member in column.members)})"
        case "date" | "year" | "json" | "uuid" | "inet4" | "inet6":
            return kind
        case _:
            assert_never(kind)


def escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def key_part(column_name: str, column: Column | None, parts: int) -> str:
    """Return a key part; of a long column it is a prefix, which is unique if not shorter than the
    source's. A column that isn't known isn't long."""
    if column is None or column.kind not in ("text", "blob"):
        return name(column_name)
    room = _MAX_KEY_BYTES // parts
    if column.length == 1:
        room = min(room, 255)
    return f"{name(column_name)}({room // 4 if column.kind == 'text' else room})"
