"""Kinds of sinks, and opening a sink from its URL and options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .. import config
from ..errors import ConfigError
from .files.kinds import LINES, PARQUET
from .kind import SinkContext, SinkKind
from .python import PYTHON, Receiver
from .sink import CheckpointStore, Sink
from .sql.kinds import MYSQL, SQLITE

GROUP: Final = "tidemill.sinks"
"""Group of the entry points by which installed packages add kinds of sinks."""

SINKS: Final = config.Registry(GROUP, SinkKind, (SQLITE, MYSQL, LINES, PARQUET, PYTHON))

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)(?:\+[A-Za-z0-9._-]+)?:")
_TYPE: Final = re.compile(r"expected `(\w+)`(?:, got .*)?")
_NO_OPTIONS: Final[Mapping[str, Any]] = {}


class SinkForm(config.Form):
    """Form of a [[sink]] section's options; errors name the sink."""

    def unknown(self, where: str, key: str, known: Any) -> str:
        return f"{where}: unknown option {key!r}; accepted: {', '.join(known) or 'none'}"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:
        if found := _TYPE.fullmatch(why):
            return f"{where}: {key} must be a {found[1]}, not {value!r}"
        return f"{where}: {key} = {value!r}: {why}"


SINK_FORM: Final = SinkForm()


class GivenSink(NamedTuple):
    """A sink's name, kind and checked options; nothing has been opened."""

    kind: SinkKind
    target: str | Receiver
    options: Any


def given_sink(
    name: str,
    target: str | Receiver,
    options: Mapping[str, Any] = _NO_OPTIONS,
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
    options: Mapping[str, Any] = _NO_OPTIONS,
) -> Sink:
    """Make the sink for a URL, or for a function that takes items; not opened yet.

    `store` is for sinks that can't keep their checkpoint in the target. `options` are the fields of the
    kind's dataclass: `table_name` of SQLite, `schema` of MySQL and MariaDB, `format` of files, `file_bytes`
    and `flush_seconds` of Parquet, `explicit` of a function. Raises ConfigError that names the accepted
    values.
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


def survey_sink(given: GivenSink, context: SinkContext) -> Iterator[config.Finding]:
    """Yield the kind's findings about the target. Raises TidemillError."""
    return given.kind.survey(given.target, given.options, context)


def _kind(name: str, url: str, options: Mapping[str, Any]) -> SinkKind:
    found = _SCHEME.match(url)
    if found is None:
        raise ConfigError(f"sink {name}: {url!r} is not a URL; accepted: {_accepted()}")
    kind = SINKS.find(found[1])
    if kind is None:
        accepted = _accepted()
        raise ConfigError(
            f"sink {name}: no sink writes to {found[1]!r}; accepted: {accepted}{SINKS.problems}"
        )
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
