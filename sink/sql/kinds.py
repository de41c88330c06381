"""Registry entries for SQL databases as sinks, one for each dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ...dialects.dialect import Dialect
from ...dialects.options import RowOptions
from ...dialects.registry import DIALECTS
from ..kind import ByRows, NotOnSpark, SinkKind


def sink_kind(dialect: Dialect) -> SinkKind:
    """Return the kind of sink that writes to databases of a dialect."""
    traits = dialect.traits
    return SinkKind(
        name=dialect.name,
        schemes=dialect.schemes,
        examples=dialect.examples,
        options=dialect.options,
        open=_later("open_sql", dialect),
        survey=_later("survey_sql", dialect),
        misfits=dialect.misfits,
        extra=dialect.extra,
        drivers=dialect.drivers,
        on_spark=ByRows()
        if traits.is_shared
        else NotOnSpark(reason="one process writes the file: write Parquet files, which it reads"),
        dead_letters=_later("letters", dialect),
        has_definitions=_copies_definitions,
        revisions=_later("revisions", dialect) if traits.is_shared else None,
        dialect=dialect,
    )


def _copies_definitions(_: str, options: RowOptions) -> bool:
    return options.copies_definitions


def _later(name: str, dialect: Dialect) -> Callable[..., Any]:
    """Return a function of `opening` that imports it, with the drivers, at the first call."""

    def call(*arguments: object) -> object:
        from . import opening

        return partial(getattr(opening, name), dialect)(*arguments)

    return call


BUILT_IN: Final = tuple(map(sink_kind, DIALECTS.built_in))


def all_kinds() -> Iterator[SinkKind]:
    """Yield the kinds of all dialects, also of installed packages."""
    return map(sink_kind, DIALECTS)
