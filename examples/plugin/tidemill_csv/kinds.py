"""The entries of tidemill's registries, which pyproject.toml names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tidemill.config import Finding
from tidemill.config.survey import begins, writable_file
from tidemill.errors import ConfigError
from tidemill.sink.kind import NotOnSpark, SinkContext, SinkKind
from tidemill.sink.sink import Sink
from tidemill.sources.kind import SourceContext, SourceKind
from tidemill.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSinkOptions:
    """Options of the sink: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSourceOptions:
    path: Path
    poll_seconds: Annotated[float, Meta(gt=0)] = 0.2
    """Pause before looking for more at the file's end."""

    @property
    def loads(self) -> bool:
        return False

    @property
    def address(self) -> str:
        return str(self.path)


def path_of(url: str) -> Path:
    path = url.partition(":")[2].removeprefix("//")
    if not path:
        raise ConfigError(f"{url!r} names no file; for instance csv:///var/rows.csv")
    return Path(path)


def _open_sink(url: str, options: CsvSinkOptions, context: SinkContext) -> Sink:
    from .sink import CsvSink

    return CsvSink(context.name, path_of(url), context.store)


def _survey_sink(url: str, options: CsvSinkOptions, context: SinkContext) -> Iterator[Finding]:
    yield writable_file(path_of(url))
    stored = context.store.load()
    yield begins(None if stored is None else stored[0])


def _read_url(url: str) -> dict[str, Any]:
    return {"path": path_of(url)}


def _open_source(options: CsvSourceOptions, context: SourceContext) -> Source:
    from .source import CsvSource

    return CsvSource(options.path, options.poll_seconds, context.tables)


def _survey_source(options: CsvSourceOptions, context: SourceContext) -> Iterator[Finding]:
    from .source import CsvSource

    return CsvSource(options.path, options.poll_seconds, context.tables).survey()


SINK = SinkKind(
    name="csv",
    schemes=("csv",),
    examples=("csv:///rows.csv",),
    options=CsvSinkOptions,
    open=_open_sink,
    survey=_survey_sink,
    on_spark=NotOnSpark(reason="its tasks would write to one file at once; use directory:///rows"),
)

SOURCE = SourceKind(
    name="csv",
    schemes=("csv",),
    example="csv:///rows.csv",
    options=CsvSourceOptions,
    read_url=_read_url,
    open=_open_source,
    survey=_survey_source,
    url_only=frozenset({"path"}),
)
