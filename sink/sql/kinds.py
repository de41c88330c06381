"""Registry entries for SQL databases as sinks, one for each dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ...dialects.dialect import Dialect
from ...dialects.options import RowOptions
from ...dialects.registry import DIALECTS
from ...lazy import later
from ..kind import ByRows, NotOnSpark, SinkKind


def sink_kind(dialect: Dialect) -> SinkKind:
    """Return the kind of sink that writes to databases of a dialect."""
    traits = dialect.traits

    def opening(name: str) -> Callable[..., Any]:
        return partial(later(__package__, f".opening:{name}"), dialect)

    return SinkKind(
        name=dialect.name,
        schemes=dialect.schemes,
        examples=dialect.examples,
        options=dialect.options,
        open=opening("open_sql"),
        survey=opening("survey_sql"),
        misfits=dialect.misfits,
        extra=dialect.extra,
        drivers=dialect.drivers,
        on_spark=ByRows()
        if traits.is_shared
        else NotOnSpark(reason="one process writes the file: write Parquet files, which it reads"),
        dead_letters=opening("letters"),
        has_definitions=_copies_definitions,
        revisions=opening("revisions") if traits.is_shared else None,
        dialect=dialect,
    )


def _copies_definitions(_: str, options: RowOptions) -> bool:
    return options.copies_definitions


BUILT_IN: Final = tuple(map(sink_kind, DIALECTS.built_in))


def all_kinds() -> Iterator[SinkKind]:
    """Yield the kinds of all dialects, also of installed packages."""
    return map(sink_kind, DIALECTS)
