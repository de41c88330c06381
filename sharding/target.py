"""The table that a route leads to, with parts of the shard's names in its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..chain.selection.name_pattern import NamePattern
from ..chain.selection.tables import TablePatterns
from ..errors import ConfigError, SinkError
from ..events import TableName
from .extractor import PARTS
from .shard import Shard

_NAME: Final = re.compile(r"(?P<schema>(?:[^{}.]|\{[^{}]*\})+)\.(?P<table>(?:[^{}]|\{[^{}]*\})+)")
_REFERENCE: Final = re.compile(r"\{([^{}.]*)(?:\.([^{}]*))?\}")


class TargetName:
    """The name "schema.table", in which `{source}`, `{schema}` and `{table}` are those of the shard, and
    `{table.1}` or `{table.NAME}` is a group of the regular expression for its table, which every pattern has.

    Raises ConfigError, naming the option `where`.
    """

    def __init__(self, text: str, source: NamePattern, tables: TablePatterns, where: str) -> None:
        self.text: Final = text
        match = _NAME.fullmatch(text)
        if match is None:
            raise ConfigError(f'{where} = {text!r}: write "schema.table"')
        for reference in _REFERENCE.finditer(text):
            for one in tables.included:
                _check(reference, {"source": source, **one.parts}, f"{where} = {text!r}")
        self._source: Final = source
        self._tables: Final = tables
        self._schema: Final = match["schema"]
        self._table: Final = match["table"]

    def of(self, shard: Shard) -> TableName:
        """Return the merged table of a shard that the patterns match. Raises SinkError for an empty name."""
        name = self._filled(self._schema, shard), self._filled(self._table, shard)
        if not all(name):
            raise SinkError(
                f"route.target = {self.text!r}: {shard} would go to {'.'.join(name)!r}, as a group has no "
                "part in its name: change the expression, or exclude the table"
            )
        return name

    def _filled(self, text: str, shard: Shard) -> str:
        def part(reference: re.Match[str]) -> str:
            name: str = getattr(shard, reference[1])
            if reference[2] is None:
                return name
            parts = {"source": self._source, **self._tables.parts(shard.schema, shard.table)}
            return parts[reference[1]].group(name, reference[2])

        return _REFERENCE.sub(part, text)


def _check(reference: re.Match[str], patterns: Mapping[str, NamePattern], where: str) -> None:
    part, group = reference[1], reference[2]
    if part not in patterns:
        accepted = ", ".join(f"{{{one}}}" for one in PARTS)
        raise ConfigError(
            f"{where}: {reference[0]} is none of {accepted}, and groups such as {{table.1}} of their regular "
            "expressions"
        )
    if group is not None and group not in (groups := patterns[part].groups):
        raise ConfigError(
            f"{where}: {reference[0]}: {part} {patterns[part].text!r} has "
            + (f"only the groups {', '.join(sorted(groups))}" if groups else "no groups")
            + ": write a regular expression after ~, with the group in ()"
        )
