"""Checks of a feed's table patterns: each matches a table, and they don't change between runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError
from ..routing import TableFilter, named
from ..sources.source import SourceInfo, no_table_matches
from ..store.disk import replace
from .options import FeedOptions


def reject_unmatched(options: FeedOptions, found: SourceInfo) -> None:
    """Raise ConfigError for a pattern that matches no table, which would otherwise be missing silently."""
    unmatched = options.tables.unmatched(found.tables)
    if unmatched:
        raise ConfigError(no_table_matches(unmatched, found.tables))
    followed = [table for table in found.tables if options.tables.matches(*table)]
    for sink in options.sinks:
        if sink.tables is not None and (unmatched := sink.tables.unmatched(followed)):
            names = named(unmatched, followed)
            raise ConfigError(
                f"sink {sink.name}: tables: no table of this feed matches {names}: fix the pattern, or let "
                "source.tables follow the table"
            )


def check_patterns(options: FeedOptions, *, is_new: bool) -> None:
    """Store the patterns next to the checkpoints. Raises ConfigError if different ones are stored."""
    path = options.data_dir / f"{options.name}.tables"
    _keep(path, options.tables, "source.tables: this feed followed", is_new=is_new)
    for sink in options.sinks:
        path = options.data_dir / f"{options.name}.{sink.name}.tables"
        if sink.tables is not None or path.exists():
            _keep(
                path, sink.tables or options.tables, f"sink {sink.name}: tables: it was given", is_new=is_new
            )


def _keep(path: Path, tables: TableFilter, what: str, *, is_new: bool) -> None:
    patterns = json.dumps(tables.patterns)
    before = path.read_text() if path.exists() else None
    if not (is_new or before is None or _only_excludes(before, tables.patterns)):
        raise ConfigError(
            f"{what} {before} so far, and what happened to other tables "
            "is missing in its targets: give a feed with other patterns a new name and target, or remove "
            f'{path} to go on all the same; patterns that leave tables out, as "!shop.orders", may be added '
            "at the end"
        )
    if before != patterns:
        replace(path, patterns.encode())


def _only_excludes(before: str, patterns: Sequence[str]) -> bool:
    """Return True if the patterns are those before, with none but exclusions after them: no table is new."""
    have = json.loads(before)
    added = patterns[len(have) :]
    return list(patterns[: len(have)]) == have and all(pattern.startswith("!") for pattern in added)
