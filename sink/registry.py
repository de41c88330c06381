"""Kinds of sinks, and opening a sink from its URL and options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from .. import config
from ..config.url import redacted
from ..errors import ConfigError
from ..events import Table
from .dead_letters import DeadLetters
from .files.kinds import ARCHIVE, BUCKET, DELTA, DIRECTORY, LINES
from .files.lakes.iceberg_kind import ICEBERG
from .kafka.kinds import KAFKA
from .kind import SinkContext, SinkKind
from .python import PYTHON, Receiver
from .sink import CheckpointStore, Sink
from .sql.kinds import BUILT_IN, all_kinds

GROUP: Final = "tidemill.sinks"
"""Group of the entry points by which installed packages add kinds of sinks."""

SINKS: Final = config.Registry(
    GROUP, SinkKind, (*BUILT_IN, KAFKA, LINES, ARCHIVE, BUCKET, DIRECTORY, DELTA, ICEBERG, PYTHON), all_kinds
)

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)(?:\+([A-Za-z0-9._-]*))?:")
_NO_OPTIONS: Final[Mapping[str, object]] = {}


SINK_FORM: Final = config.Form(noun="option", separator=": ", shows_values=True)


class GivenSink(NamedTuple):
    """A sink's name, kind and checked options; nothing has been opened."""

    kind: SinkKind
    target: str | Receiver
    options: Any

    def __repr__(self) -> str:
        return f"GivenSink(kind={self.kind.name!r})"  # the URL may have a password


def given_sink(
    name: str,
    target: str | Receiver,
    options: Mapping[str, object] = _NO_OPTIONS,
    form: config.Form = SINK_FORM,
) -> GivenSink:
    """Return the choice for a URL or a function, with its options built. Raises ConfigError."""
    kind = PYTHON if callable(target) else _kind(name, target, options)
    with _blamed(name):
        section = f"sink {name}"
        return GivenSink(kind, target, config.build(kind.options, options, section, form))


def open_sink(
    name: str,
    target: str | Receiver,
    *,
    feed: str,
    store: CheckpointStore,
    options: Mapping[str, object] = _NO_OPTIONS,
) -> Sink:
    """Make the sink for a URL, or for a function that takes items; not opened yet.

    `store` is for sinks that can't keep their checkpoint in the target. `options` are the fields of the
    kind's dataclass: `table_name` of SQLite, `schema` of MySQL, MariaDB and PostgreSQL, `format` of files,
    `file_bytes` and `flush_seconds` of Parquet, `explicit` of a function. Raises ConfigError that names the
    accepted values.
    """
    choice = given_sink(name, target, options)
    return open_given(choice, SinkContext(name=name, feed=feed, store=store))


def open_given(choice: GivenSink, context: SinkContext) -> Sink:
    """Make a sink whose options are built; not opened yet. Raises ConfigError."""
    kind = choice.kind
    with _blamed(context.name):
        try:
            return kind.open(choice.target, choice.options, context)
        except ImportError as error:
            needs = f"pip install 'tidemill[{kind.extra}]'" if kind.extra else str(error)
            raise ConfigError(f"{kind.name} needs: {needs}") from error


def open_dead_letters(
    target: str, *, feed: str, options: Mapping[str, object] = _NO_OPTIONS, name: str = "copy"
) -> DeadLetters:
    """Return the dead letters of a feed in a target, by its URL and options, not connected yet.

    Raises ConfigError, also for a kind of sink that keeps none.
    """
    choice = given_sink(name, target, options)
    letters = dead_letters_of(choice, feed)
    if letters is None:
        raise ConfigError(f"sink {name}: a {choice.kind.name} sink keeps no dead letters: name a SQL target")
    return letters


def dead_letters_of(choice: GivenSink, feed: str) -> DeadLetters | None:
    """Return the dead letters of a feed, not connected yet; None if such a sink keeps none."""
    make = choice.kind.dead_letters
    return None if make is None else make(choice.target, choice.options, feed)


def survey_sink(choice: GivenSink, context: SinkContext) -> Iterator[config.Finding]:
    """Yield the kind's findings about the target. Raises TidemillError."""
    return choice.kind.survey(choice.target, choice.options, context)


def misfits(choice: GivenSink, tables: Iterable[Table]) -> Iterator[config.Finding]:
    """Yield findings about tables of the source that the target can't hold."""
    if (find := choice.kind.misfits) is not None:
        for table in tables:
            for finding in find(choice.options, table):
                yield replace(finding, tables=(table.full_name,))


def _kind(name: str, url: str, options: Mapping[str, object]) -> SinkKind:
    match = _SCHEME.match(url)
    if match is None:
        raise ConfigError(f"sink {name}: {redacted(url)!r} is not a URL; accepted: {_accepted()}")
    kind = SINKS.find(match[1])
    if kind is None:
        accepted = _accepted()
        raise ConfigError(
            f"sink {name}: no sink writes to {match[1]!r}; accepted: {accepted}{SINKS.problems}"
        )
    if match[2] is not None and match[2] not in kind.drivers:
        accepted = ", ".join([match[1], *(f"{match[1]}+{driver}" for driver in kind.drivers)])
        raise ConfigError(f"sink {name}: no driver {match[2]!r} for {match[1]}; accepted: {accepted}")
    with _blamed(name):
        return (kind.variant and kind.variant(url, options)) or kind


def _accepted() -> str:
    return f"{', '.join(example for kind in SINKS for example in kind.examples)} or a function"


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    """Prefix errors with the sink's name, once."""
    try:
        yield
    except ConfigError as error:
        said = str(error)
        raise ConfigError(said if said.startswith(f"sink {name}: ") else f"sink {name}: {said}") from error
