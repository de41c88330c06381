"""Kinds of sources, and opening a source from its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .. import config
from ..config.url import redacted
from ..errors import ConfigError
from .kind import SourceContext, SourceKind, SourceOptions
from .kinds import MYSQL, PUMP, TIKV

if TYPE_CHECKING:
    from .source import Source

GROUP: Final = "tidemill.sources"
"""Group of the entry points by which installed packages add kinds of sources."""

SOURCES: Final = config.Registry(GROUP, SourceKind, (MYSQL, TIKV, PUMP))

OF_ANY: Final = ("url", "tables")
"""Keys of a source's section that are the same for every kind."""


def source_kind(url: str) -> SourceKind:
    """Return the kind for a URL. Raises ConfigError, naming the accepted schemes."""
    scheme = url.partition(":")[0]
    kind = SOURCES.find(scheme)
    if kind is None:
        accepted = ", ".join(scheme for kind in SOURCES for scheme in kind.schemes)
        raise ConfigError(
            f"source.url: no source {redacted(scheme)!r}; accepted: {accepted}{SOURCES.problems}"
        )
    return kind


def source_options(
    url: str, entries: Mapping[str, object], form: config.Form = config.FILE
) -> tuple[SourceKind, SourceOptions]:
    """Return a URL's kind, and its options from a section without `url` and `tables`. Raises ConfigError."""
    kind = source_kind(url)
    names = config.declaration(kind.options).options.values()
    known = [*OF_ANY, *(one.name for one in names if one.field not in kind.url_only)]
    config.reject_unknown(entries, known, "source", form)
    try:
        from_url = kind.read_url(url)
    except ConfigError as error:
        said = str(error)
        raise ConfigError(said if said.startswith("source.") else f"source.url: {said}") from None
    options: SourceOptions = config.build(kind.options, entries, "source", form, from_url)
    return kind, options


def checked_options(options: SourceOptions) -> tuple[SourceKind, SourceOptions]:
    """Return the kind of options that a program made, and the options once checked. Raises ConfigError."""
    kind = next((kind for kind in SOURCES if kind.options is type(options)), None)
    if kind is None:
        accepted = ", ".join(kind.options.__name__ for kind in SOURCES)
        raise ConfigError(f"source: {type(options).__name__} is no URL, and none of {accepted}")
    return kind, config.checked(options, "source")


def missing_url(entries: Mapping[str, object]) -> ConfigError:
    """Return the error about a section without a URL. Raises ConfigError for a key that no kind has."""
    names = {name for kind in SOURCES for name in config.declaration(kind.options).options}
    config.reject_unknown(entries, [*OF_ANY, *sorted(names)], "source")
    examples = " or ".join(f'"{kind.example}"' for kind in SOURCES)
    return ConfigError(f"source.url: missing; for instance {examples}")


def open_kind(kind: SourceKind, options: SourceOptions, context: SourceContext) -> Source:
    """Make the source, not connected yet. Raises ConfigError if a package is missing."""
    with _needs(kind):
        return kind.open(options, context)


def survey_kind(kind: SourceKind, options: SourceOptions, context: SourceContext) -> Iterator[config.Finding]:
    """Yield the kind's findings about the source. Raises TidemillError."""
    with _needs(kind):
        yield from kind.survey(options, context)


@contextmanager
def _needs(kind: SourceKind) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        needs = f"pip install 'tidemill[{kind.extra}]'" if kind.extra else str(error)
        raise ConfigError(f"source.url: {kind.name} needs: {needs}") from error
