"""Kinds of sinks, and opening a sink from its URL and options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .. import config
from ..config.url import redacted
from ..errors import ConfigError
from ..events import Table
from .dead_letters import DeadLetters
from .files.kinds import ARCHIVE, BUCKET, DIRECTORY, LINES
from .kafka.kinds import KAFKA
from .kind import SinkContext, SinkKind
from .python import PYTHON, Receiver
from .sink import CheckpointStore, Sink
from .sql.kinds import BUILT_IN, all_kinds

GROUP: Final = "tidemill.sinks"
"""Group of the entry points by which installed packages add kinds of sinks."""

SINKS: Final = config.Registry(
    GROUP, SinkKind, (*BUILT_IN, KAFKA, LINES, ARCHIVE, BUCKET, DIRECTORY, PYTHON), all_kinds
)

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)(?:\+([A-Za-z0-9._-]*))?:")
_TYPE: Final = re.compile(r"expected `(\w+)`(?:, got .*)?")
_NO_OPTIONS: Final[Mapping[str, object]] = {}


class SinkForm(config.Form):
    """Form of a [[sink]] section's options; errors name the sink."""

    def path(self, where: str, key: str) -> str:
        return f"{where}: {key}"

    def unknown(self, where: str, key: str, known: Any) -> str:
        return f"{where}: unknown option {key!r}; accepted: {', '.join(known) or 'none'}"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:
        if found := _TYPE.fullmatch(why):
            return f"{where}: {key} must be a {found[1]}, not {shown(value)}"
        return f"{where}: {key} = {shown(value)}: {why}"


def shown(value: object) -> str:
    """Return an option's value for messages, without the login of a URL."""
    return repr(redacted(value) if isinstance(value, str) else value)


SINK_FORM: Final = SinkForm()


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
    given = given_sink(name, target, options)
    return open_given(given, SinkContext(name=name, feed=feed, store=store))


def open_given(given: GivenSink, context: SinkContext) -> Sink:
    """Make a sink whose options are built; not opened yet. Raises ConfigError."""
    kind = given.kind
    with _blamed(context.name):
        try:
            return kind.open(given.target, given.options, context)
        except ImportError as error:
            needs = f"pip install 'tidemill[{kind.extra}]'" if kind.extra else str(error)
            raise ConfigError(f"{kind.name} needs: {needs}") from error


def open_dead_letters(
    target: str, *, feed: str, options: Mapping[str, object] = _NO_OPTIONS, name: str = "copy"
) -> DeadLetters:
    """Return the dead letters of a feed in a target, by its URL and options, not connected yet.

    Raises ConfigError, also for a kind of sink that keeps none.
    """
    given = given_sink(name, target, options)
    found = dead_letters_of(given, feed)
    if found is None:
        raise ConfigError(f"sink {name}: a {given.kind.name} sink keeps no dead letters: name a SQL target")
    return found


def dead_letters_of(given: GivenSink, feed: str) -> DeadLetters | None:
    """Return the dead letters of a feed, not connected yet; None if such a sink keeps none."""
    make = given.kind.dead_letters
    return None if make is None else make(given.target, given.options, feed)


def survey_sink(given: GivenSink, context: SinkContext) -> Iterator[config.Finding]:
    """Yield the kind's findings about the target. Raises TidemillError."""
    return given.kind.survey(given.target, given.options, context)


def misfits(given: GivenSink, tables: Iterable[Table]) -> Iterator[config.Finding]:
    """Yield findings about tables of the source that the target can't hold."""
    if (find := given.kind.misfits) is not None:
        for table in tables:
            yield from find(given.options, table)


def _kind(name: str, url: str, options: Mapping[str, object]) -> SinkKind:
    found = _SCHEME.match(url)
    if found is None:
        raise ConfigError(f"sink {name}: {redacted(url)!r} is not a URL; accepted: {_accepted()}")
    kind = SINKS.find(found[1])
    if kind is None:
        accepted = _accepted()
        raise ConfigError(
            f"sink {name}: no sink writes to {found[1]!r}; accepted: {accepted}{SINKS.problems}"
        )
    if found[2] is not None and found[2] not in kind.drivers:
        accepted = ", ".join([found[1], *(f"{found[1]}+{driver}" for driver in kind.drivers)])
        raise ConfigError(f"sink {name}: no driver {found[2]!r} for {found[1]}; accepted: {accepted}")
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
