"""Patterns of a feed's tables: each matches a table, and what changes when others are given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ..chain.selection.tables import EVERY_TABLE, TablePatterns, named
from ..errors import ConfigError
from ..sources.source import SourceInfo, no_table_matches
from ..store.disk import replace
from .options import FeedOptions


def reject_unmatched(options: FeedOptions, present: SourceInfo) -> None:
    """Raise ConfigError for a pattern that matches no table, which would otherwise be missing silently."""
    _reject(options, present, frozenset())


def reject_new_unmatched(options: FeedOptions, present: SourceInfo) -> None:
    """Raise ConfigError for a pattern that matches no table and that the feed didn't have when it last ran:
    all tables of others may have been dropped since."""
    kept = {one.path: one.former for one in _kept(options)}
    if any(former is not None for former in kept.values()):
        _reject(options, present, {text for former in kept.values() if former for text in former.patterns})


def _reject(options: FeedOptions, present: SourceInfo, known: frozenset[str] | set[str]) -> None:
    if unmatched := _new(options.tables.unmatched(present.tables), known):
        raise ConfigError(no_table_matches(unmatched, present.tables))
    followed = [table for table in present.tables if options.tables.matches(*table)]
    for sink in options.sinks:
        tables = sink.rules.tables
        if tables is not None and (unmatched := _new(tables.unmatched(followed), known)):
            names = named(unmatched, followed)
            raise ConfigError(
                f"sink {sink.name}: tables: no table of this feed matches {names}: fix the pattern, or let "
                "source.tables follow the table"
            )


def _new(unmatched: Sequence[str], known: frozenset[str] | set[str]) -> list[str]:
    return [pattern for pattern in unmatched if pattern not in known]


class FormerPatterns(Struct, frozen=True):
    """Patterns by which a sink's tables were chosen when the feed last ran; a table is matched by all."""

    choices: tuple[TablePatterns, ...]
    only_excludes: bool
    """True if the present ones match no table that these don't."""

    def matches(self, table: str) -> bool:
        """Return True if the sink was given the table of this full name."""
        return all(choice.matches_full(table) for choice in self.choices)


def former_patterns(options: FeedOptions) -> dict[str, FormerPatterns]:
    """Return the former patterns of sinks for which others hold now, by the sink's name."""
    kept = {one.sink: one for one in _kept(options)}
    of_feed = kept[""]
    result = {}
    for sink in options.sinks:
        of_both = [of_feed, *([kept[sink.name]] if sink.name in kept else [])]
        if any(one.is_changed for one in of_both):
            result[sink.name] = FormerPatterns(
                tuple(one.present if one.former is None else one.former for one in of_both),
                all(one.only_excludes for one in of_both),
            )
    return result


def reject_changes(options: FeedOptions, why: str) -> None:
    """Raise ConfigError if tables may be matched now that weren't: for a feed that can't load single tables.
    `why` is the reason."""
    for one in _kept(options):
        if one.is_changed and not one.only_excludes:
            assert one.former is not None
            before, now = json.dumps(one.former.document), json.dumps(one.present.document)
            raise ConfigError(
                f"{one.what} {before} so far, not {now}: rows of newly matched tables are missing in its "
                f"targets, and it can't load single tables: {why}. Give a feed with other patterns a new "
                'name and target. Patterns that leave tables out, as "!shop.orders", may be added at the end'
            )


def keep_patterns(options: FeedOptions) -> None:
    """Store the patterns next to the checkpoints."""
    for one in _kept(options):
        patterns = json.dumps(one.present.document)
        if not one.path.exists() or one.path.read_text() != patterns:
            replace(one.path, patterns.encode())


class _KeptPatterns(Struct, frozen=True):
    """Patterns of the feed, or of one sink, and those in the file about them."""

    sink: str
    """Name of the sink; empty for the feed's own patterns."""
    path: Path
    present: TablePatterns
    former: TablePatterns | None
    """None if the feed hasn't run yet; EVERY_TABLE if the sink was given all its tables."""
    what: str
    """Beginning of an error."""

    @property
    def is_changed(self) -> bool:
        return self.former is not None and self.former.document != self.present.document

    @property
    def only_excludes(self) -> bool:
        """True if the patterns are those before, with none but exclusions after them: no table is new."""
        if self.former is None or self.former is EVERY_TABLE:
            return True
        had, now = self.former.document, self.present.document
        if not (isinstance(had, list) and isinstance(now, list)):
            return had == now
        return now[: len(had)] == had and all(pattern.startswith("!") for pattern in now[len(had) :])


def _kept(options: FeedOptions) -> Iterator[_KeptPatterns]:
    path = options.data_dir / f"{options.name}.tables"
    what = "source.tables: this feed followed"
    yield _KeptPatterns("", path, options.tables, of_feed := _read(path), what)
    for sink in options.sinks:
        path = options.data_dir / f"{options.name}.{sink.name}.tables"
        present = sink.rules.tables
        if present is not None or path.exists():
            what = f"sink {sink.name}: tables: it was given"
            former = _read(path) or (None if of_feed is None else EVERY_TABLE)
            yield _KeptPatterns(sink.name, path, present or options.tables, former, what)


def _read(path: Path) -> TablePatterns | None:
    if not path.exists():
        return None
    try:
        return TablePatterns.of_document(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError, ConfigError):
        raise ConfigError(
            f"{path} is damaged, or of another version: write the former patterns into it, as a list in JSON"
        ) from None
