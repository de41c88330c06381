"""The choice of tables by patterns, in every spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import ConfigError
from .name_pattern import NamePattern

Matches: TypeAlias = Callable[[str, str], bool]
"""True for a schema and a table that are chosen."""


class TablePattern(Struct, frozen=True):
    """One pattern, which includes or excludes tables."""

    text: str
    matches: Matches
    touches: Callable[[str], bool]
    """True for a schema whose tables may match."""
    is_wanted: bool = True
    """False if tables that match are excluded."""
    parts: Mapping[str, NamePattern] = {}
    """Patterns of the "schema" and of the "table"; empty if the pattern is about both as one name."""


class TablePatterns:
    """Patterns of which the last one that matches a table decides; a table that none matches isn't chosen."""

    def __init__(
        self,
        patterns: Sequence[TablePattern],
        *,
        matches: Matches | None = None,
        keys: tuple[bytes, bytes] = (b"", b""),
        is_part: bool = False,
        is_canal: bool = False,
    ) -> None:
        """`matches` decides in place of the patterns; `is_canal` is True for those in Canal's notation."""
        self.patterns = tuple(one.text for one in patterns)
        self.keys = keys
        """Range of row keys that is chosen, for a source whose rows have keys: from the first up to but not
        including the second; empty: no bound."""
        self._patterns = tuple(patterns)
        self._is_part = is_part
        self._is_canal = is_canal
        self.matches = lru_cache(maxsize=4096)(matches or self._last)

    @staticmethod
    def parse(patterns: Sequence[str], where: str = "tables", *, ignores_case: bool = False) -> TablePatterns:
        """Return the choice by patterns over "schema.table": `*` and `?` are wildcards, `!` excludes.

        `["shop.*", "!shop.tmp_*", "shop.tmp_keep"]` chooses everything in shop but the tables that begin with
        tmp_, save one. After `~`, the schema or the table is a regular expression for the whole name, as in
        `"shop.~orders_[0-9]+"`; that of a schema has no dot. Upper and lower case are told apart, unless
        `ignores_case`.

        Raises ConfigError, naming the option `where`, without patterns, or for one that isn't "schema.table".
        """
        if not patterns:
            raise ConfigError(f'{where}: no pattern given; name at least one, for instance "shop.*"')
        return TablePatterns([_pattern(pattern, where, ignores_case) for pattern in patterns])

    @staticmethod
    def canal(regex: str, black_regex: str = "") -> TablePatterns:
        r"""Return the choice by Canal's expressions, separated by commas, such as `shop\..*,bank\.acc.*`, and
        others that exclude.

        Each must match all of "schema.table"; upper and lower case are the same. No expression at all matches
        every table, and excludes none. Commas in (), [] and {} don't separate. Source: Canal's
        AviaterRegexFilter.

        Raises ConfigError for an expression that can't be compiled.
        """
        return TablePatterns._of_canal(split(regex), split(black_regex))

    @staticmethod
    def _of_canal(regex: Sequence[str], black_regex: Sequence[str]) -> TablePatterns:
        wanted = [_expression(one, "regex") for one in regex]
        black = [_expression(one, "black_regex") for one in black_regex]
        excluded = [replace(one, text=f"!{one.text}", is_wanted=False) for one in black]
        return TablePatterns([*(wanted or [ANY]), *excluded], is_canal=True)

    @property
    def document(self) -> list[str] | dict[str, list[str]]:
        """The patterns as JSON, from which `of_document` makes the same choice."""
        return {"canal": [*self.patterns]} if self._is_canal else [*self.patterns]

    @staticmethod
    def of_document(document: list[str] | dict[str, list[str]]) -> TablePatterns:
        """Return the choice of a `document`. Raises ConfigError for one that is none."""
        if isinstance(document, list):
            return TablePatterns.parse(document)
        patterns = document["canal"]
        black = [text.removeprefix("!") for text in patterns if text.startswith("!")]
        wanted = [text for text in patterns if not text.startswith("!") and text != ANY.text]
        return TablePatterns._of_canal(wanted, black)

    @staticmethod
    def of_several(members: Mapping[str, TablePatterns]) -> TablePatterns:
        """Return the choice of the tables that some member chooses; only members name unmatched patterns."""
        patterns = [
            replace(one, text=f"{name}: {one.text}", matches=ANY.matches)
            for name, each in members.items()
            for one in each._patterns
        ]
        choices = [each.matches for each in members.values()]
        return TablePatterns(patterns, matches=lambda *name: any(matches(*name) for matches in choices))

    def within(
        self, has: Matches, keys: tuple[bytes, bytes] = (b"", b""), *, is_part: bool = False
    ) -> TablePatterns:
        """Return the choice of the tables of this one for which `has`, which may raise, is true.

        With `is_part`, it may have rows even if none of the present tables is in it.
        """
        mine = self.matches
        return TablePatterns(
            self._patterns, matches=lambda *name: mine(*name) and has(*name), keys=keys, is_part=is_part
        )

    def others(self) -> TablePatterns:
        """Return the choice of all other tables."""
        return TablePatterns([ANY], matches=lambda *name: not self.matches(*name))

    def _last(self, schema: str, table: str) -> bool:
        return any(one.is_wanted for one in self._deciding(schema, table))

    def _deciding(self, schema: str, table: str) -> Sequence[TablePattern]:
        """Return the pattern that decides about a table; nothing if none matches."""
        return [one for one in self._patterns if one.matches(schema, table)][-1:]

    @property
    def included(self) -> Sequence[TablePattern]:
        """The patterns without exclusions."""
        return [one for one in self._patterns if one.is_wanted]

    def parts(self, schema: str, table: str) -> Mapping[str, NamePattern]:
        """Return the parts of the pattern by which a table is chosen."""
        (decides,) = self._deciding(schema, table)
        return decides.parts

    def matches_full(self, name: str) -> bool:
        """Return True if "schema.table" is chosen."""
        schema, _, table = name.partition(".")
        return self.matches(schema, table)

    def touches(self, schema: str) -> bool:
        """Return True if tables of this schema may be chosen."""
        return any(one.touches(schema) for one in self.included)

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:
        """Return the patterns, without exclusions, that match none of these (schema, table) names."""
        return [
            one.text
            for one in self.included
            if self._is_part or not any(one.matches(*table) for table in tables)
        ]


def exactly(schema: str, table: str = "") -> str:
    """Return the pattern of one table, or of all tables of a schema."""
    return f"{_exact_name(schema)}.{_exact_name(table) if table else '*'}"


def _exact_name(name: str) -> str:
    if re.fullmatch(r"\w[\w$-]*", name):
        return name
    # Escapes by number: a dot would end the schema, and spaces around a pattern are ignored.
    return "~" + "".join(char if char.isalnum() else f"\\U{ord(char):08x}" for char in name)


ANY: Final = TablePattern("*.*", lambda *_: True, lambda _: True)
"""The pattern of every table."""
EVERY_TABLE: Final = TablePatterns([ANY])


def named(unmatched: Sequence[str], tables: Sequence[tuple[str, str]]) -> str:
    """Return the patterns that match none of these names for a message, with a likely reason."""
    return ", ".join(f"{pattern!r}{_in_another_case(pattern, tables)}" for pattern in unmatched)


def _in_another_case(pattern: str, tables: Sequence[tuple[str, str]]) -> str:
    try:
        other = TablePatterns.parse([pattern], ignores_case=True)
    except ConfigError:  # of Canal
        return ""
    for schema, table in tables:
        if other.matches(schema, table):
            return f" (there is {schema}.{table}, but upper and lower case differ)"
    return ""


def _pattern(pattern: str, where: str, ignores_case: bool) -> TablePattern:
    schema, dot, table = pattern.removeprefix("!").strip().partition(".")
    if (schema.startswith("/") and pattern.count("/") > 1) or re.fullmatch("/.+/", table):
        raise ConfigError(
            f"{where}: {pattern!r} has a regular expression between slashes, which isn't accepted: write "
            '"schema.table", with * and ? as wildcards, for instance "!shop.tmp_*"'
        )
    if not (schema and dot and table):
        raise ConfigError(
            f'{where}: {pattern!r} is not a pattern; write "schema.table", with * and ? as wildcards '
            'and ! in front to exclude, for instance "shop.*" or "!shop.tmp_*"'
        )
    if schema.startswith("~") and "." in table and not table.startswith("~"):
        raise ConfigError(
            f"{where}: {pattern!r}: the first dot ends the schema's regular expression: write it without a "
            'dot, for instance "~shop_[0-9]+.*", or name the schema with * and ?'
        )
    schemas, tables = (NamePattern(name, where, ignores_case=ignores_case) for name in (schema, table))
    return TablePattern(
        pattern,
        lambda schema, table: schemas.matches(schema) and tables.matches(table),
        schemas.matches,
        not pattern.startswith("!"),
        {"schema": schemas, "table": tables},
    )


def _expression(text: str, option: str) -> TablePattern:
    matches = canal_expression(text, option).fullmatch
    return TablePattern(text, lambda *name: matches(".".join(name)) is not None, lambda _: True)


def canal_expression(text: str, option: str) -> re.Pattern[str]:
    """Return one of Canal's expressions. Raises ConfigError, naming the option."""
    try:
        return re.compile(text, re.IGNORECASE | re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{option}: {text!r} is not a regular expression: {error}") from None


def split(text: str) -> list[str]:
    """Return the parts between commas, without empty ones; commas in brackets don't separate."""
    parts, depth, is_escaped = [""], 0, False
    for letter in text:
        if letter == "," and depth == 0 and not is_escaped:
            parts.append("")
            continue
        parts[-1] += letter
        if not is_escaped:
            depth += (letter in "([{") - (letter in ")]}")
        is_escaped = letter == "\\" and not is_escaped
    return [part.strip() for part in parts if part.strip()]
