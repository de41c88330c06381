"""The choice of the tables that a feed follows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ...errors import ConfigError
from .name_pattern import NamePattern


class TablePatterns:
    """Patterns over "schema.table": `*` and `?` are wildcards, `!` excludes, the last match wins.

    `["shop.*", "!shop.tmp_*", "shop.tmp_keep"]` follows everything in shop but the tables that begin
    with tmp_, save one. After `~`, the schema or the table is a regular expression for the whole name, as in
    `"shop.~orders_[0-9]+"`; that of a schema has no dot. A table that no pattern matches is not
    followed. Names are compared as the source writes them, upper and lower case apart.

    Raises ConfigError for a pattern that isn't "schema.table".
    """

    keys: tuple[bytes, bytes] = b"", b""
    """Range of row keys that is followed, for a source whose rows have keys: from the first up to but not
    including the second; empty: no bound."""

    def __init__(self, patterns: Sequence[str], where: str = "tables") -> None:
        """`where` is the option that errors name."""
        if not patterns:
            raise ConfigError(f'{where}: no pattern given; name at least one, for instance "shop.*"')
        self.patterns = tuple(patterns)
        self._rules = [_rule(pattern, where) for pattern in patterns]
        self.matches = lru_cache(maxsize=4096)(self._matches)

    def _matches(self, schema: str, table: str) -> bool:
        for wanted, schemas, names in reversed(self._rules):
            if schemas.matches(schema) and names.matches(table):
                return wanted
        return False

    def matches_full(self, name: str) -> bool:
        """Return True if "schema.table" is followed."""
        schema, _, table = name.partition(".")
        return self.matches(schema, table)

    def touches(self, schema: str) -> bool:
        """True if tables of this schema may match."""
        return any(wanted and schemas.matches(schema) for wanted, schemas, _ in self._rules)

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:
        """Return the patterns, without exclusions, that match none of these (schema, table) names."""
        return [
            pattern
            for pattern, (wanted, schemas, names) in zip(self.patterns, self._rules, strict=True)
            if wanted and not any(schemas.matches(s) and names.matches(t) for s, t in tables)
        ]


def named(unmatched: Sequence[str], tables: Sequence[tuple[str, str]]) -> str:
    """Return the patterns that match none of these names for a message, with a likely reason."""
    return ", ".join(f"{pattern!r}{_in_another_case(pattern, tables)}" for pattern in unmatched)


def _in_another_case(pattern: str, tables: Sequence[tuple[str, str]]) -> str:
    try:
        found = TablePatterns([pattern.casefold()])
    except ConfigError:  # of Canal
        return ""
    for schema, table in tables:
        if found.matches(schema.casefold(), table.casefold()):
            return f" (there is {schema}.{table}, but upper and lower case differ)"
    return ""


def _rule(pattern: str, where: str) -> tuple[bool, NamePattern, NamePattern]:
    wanted = not pattern.startswith("!")
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
    return wanted, NamePattern(schema, where), NamePattern(table, where)
