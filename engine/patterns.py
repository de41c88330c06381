"""Checks of a feed's table patterns: each matches a table, and they don't change between runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..chain.selection.tables import TablePatterns, named
from ..errors import ConfigError
from ..sources.source import SourceInfo, no_table_matches
from ..store.disk import replace
from .options import FeedOptions


def reject_unmatched(options: FeedOptions, present: SourceInfo) -> None:
    """Raise ConfigError for a pattern that matches no table, which would otherwise be missing silently."""
    unmatched = options.tables.unmatched(present.tables)
    if unmatched:
        raise ConfigError(no_table_matches(unmatched, present.tables))
    followed = [table for table in present.tables if options.tables.matches(*table)]
    for sink in options.sinks:
        tables = sink.rules.tables
        if tables is not None and (unmatched := tables.unmatched(followed)):
            names = named(unmatched, followed)
            raise ConfigError(
                f"sink {sink.name}: tables: no table of this feed matches {names}: fix the pattern, or let "
                "source.tables follow the table"
            )


def check_patterns(options: FeedOptions) -> None:
    """Raise ConfigError if other patterns are stored: for a feed whose targets have tables."""
    for path, tables, what in _stored(options):
        patterns = json.dumps(tables.patterns)
        if path.exists() and not _only_excludes(before := path.read_text(), tables.patterns):
            raise ConfigError(
                f"{what} {before} so far, not {patterns}: rows of newly matched tables are missing in its "
                f"targets. To add tables, remove {path} and load each of them (tidemill resume FEED "
                "--resnapshot TABLE); the feed stops at a change of one that isn't loaded. Or load all "
                "tables again (--resnapshot '*'), or give a feed with other patterns a new name and target. "
                'Patterns that leave tables out, as "!shop.orders", may be added at the end'
            )


def keep_patterns(options: FeedOptions) -> None:
    """Store the patterns next to the checkpoints."""
    for path, tables, _ in _stored(options):
        patterns = json.dumps(tables.patterns)
        if not path.exists() or path.read_text() != patterns:
            replace(path, patterns.encode())


def _stored(options: FeedOptions) -> Iterator[tuple[Path, TablePatterns, str]]:
    """Yield the files of patterns, with the present ones and the beginning of an error."""
    yield options.data_dir / f"{options.name}.tables", options.tables, "source.tables: this feed followed"
    for sink in options.sinks:
        path = options.data_dir / f"{options.name}.{sink.name}.tables"
        if sink.rules.tables is not None or path.exists():
            yield path, sink.rules.tables or options.tables, f"sink {sink.name}: tables: it was given"


def _only_excludes(before: str, patterns: Sequence[str]) -> bool:
    """Return True if the patterns are those before, with none but exclusions after them: no table is new."""
    have = json.loads(before)
    added = patterns[len(have) :]
    return list(patterns[: len(have)]) == have and all(pattern.startswith("!") for pattern in added)
