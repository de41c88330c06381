"""Tables and columns, and how values appear in Python."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from .kinds import Kind

DISPLAY_WIDTHS: Final[dict[Kind, tuple[int, int]]] = {
    "tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20),
}  # fmt: skip
"""Display widths of signed and of unsigned integers whose definition says none."""


class Column(Struct, frozen=True):
    """A column and how its values appear in Python.

    Integers, year and bit are `int`; decimal is `Decimal`; float and double are `float` (a FLOAT is
    the exact double of its 32 bits); char, varchar, text, enum, set, json, uuid, inet4 and inet6 are `str` as
    the source prints them; binary, varbinary and blob are `bytes` (BINARY(n) padded to n); a geometry is
    `bytes`: its SRID in 4 bytes, low byte first, then WKB; a vector is `bytes`: 32-bit floats, low byte
    first; date is `datetime.date`; datetime is a naive `datetime.datetime`; timestamp is an aware one in
    UTC; time is `datetime.timedelta`. NULL is None. A date that Python can't represent ("0000-00-00") stays
    the `str` that the source prints. Index 0 of an enum, an invalid value, is `not_a_member` of its members.
    """

    name: str
    kind: Kind
    unsigned: bool = False
    length: int = 0
    """Characters of char and varchar, bytes of binary and varbinary, bits of bit; bytes of a length
    prefix (1 to 4) of text and blob; digits of a decimal, and M of a FLOAT(M,D) or DOUBLE(M,D), 0 of one
    without; dimensions of a vector."""
    scale: int = 0
    """Digits after the point: of a decimal, D of a FLOAT(M,D) or DOUBLE(M,D), or the fraction of a second in
    a time type."""
    members: tuple[str, ...] = ()
    """The strings of an enum or set."""
    charset: str | None = None
    collation: str | None = None
    nullable: bool = True
    default: str | None = None
    """The DEFAULT clause as SQL text in the source's dialect; None if there is none."""
    on_update: str | None = None
    generated: bool = False
    """True if the source computes the values from other columns; they are copied like any others, unless the
    source's option says to leave such columns out."""
    width: int = 0
    """Display width of an integer, as in TINYINT(1); 0: that of DISPLAY_WIDTHS, or the source keeps none."""
    zerofill: bool = False
    """True if the source prints an integer, decimal, float or double with zeros in front; it is unsigned."""
    subtype: str = ""
    """Type of a geometry, as "point" or "multipolygon"; empty if it may be of any type."""


def display_width(kind: Kind, width: int, *, unsigned: bool) -> int:
    """Return `Column.width` of an integer of this display width."""
    return 0 if width == DISPLAY_WIDTHS[kind][unsigned] else width


def not_a_member(members: Sequence[str]) -> str:
    """Return the text of an enum's index 0, an invalid value.

    It is "", as the source prints it; if "" is a member, the first of "0", "00", … that isn't.
    """
    text = ""
    while text in members:
        text += "0"
    return text


class Table(Struct, frozen=True):
    """A table's name and columns, at one version of its schema."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    """Indexes of the primary key's columns in key order; empty for a table without one."""
    charset: str | None = None
    collation: str | None = None
    row_end: str | None = None
    """Name of the column ROW END of a system-versioned table, of which only the present rows are followed; it
    need not be among the columns."""
    source_name: str = ""
    """Name of the source, if it is one of several whose tables may have equal names; else empty."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def origin_name(self) -> str:
        """Name of the table in checkpoints: with its source's name before it, if it has one."""
        return origin_name(self.source_name, self.full_name)


def origin_name(source_name: str, full_name: str) -> str:
    """Return the name in checkpoints of a table of one of several sources, or of the feed's only one."""
    return f"{source_name}: {full_name}" if source_name else full_name


def source_and_table(name: str, source_names: Collection[str]) -> tuple[str, str]:
    """Return the source's name, empty for the feed's only one, and the full name in an origin name."""
    source, separator, table = name.partition(": ")
    return (source, table) if separator and source in source_names else ("", name)
