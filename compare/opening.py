"""Opening of the two sides of a comparison."""

from __future__ import annotations

from typing import Final

from ..dialects.read import Reader
from ..errors import ConfigError
from ..sink.registry import GivenSink
from ..sources.kind import SourceContext, SourceKind, SourceOptions
from ..sources.several_options import SEVERAL
from .side import Source

_BUILT_IN: Final = ("mysql", "tikv", SEVERAL.name)


def is_comparable(kind: SourceKind) -> bool:
    """Return True if the rows of such a source can be compared."""
    return kind.name in _BUILT_IN or kind.side is not None


def open_source(kind: SourceKind, options: SourceOptions, context: SourceContext, whom: str) -> Source:
    """Return a connected source. Raises TidemillError, which names `whom` if the kind can't be compared."""
    try:
        match kind.name:
            case "mysql":
                from .mysql import open_mysql

                return open_mysql(options, context)  # type: ignore[arg-type] # those of this kind
            case "tikv":
                from .tikv import open_tikv

                return open_tikv(options, context)  # type: ignore[arg-type] # those of this kind
            case SEVERAL.name:
                from .several import open_several

                return open_several(options, context, open_source)  # type: ignore[arg-type] # as above
    except ImportError as error:
        raise _missing(whom, error) from error
    if kind.side is None:
        raise ConfigError(f"{whom} can't be compared")
    opened: Source = kind.side(options, context)
    return opened


def open_target(sink: GivenSink, feed: str, whom: str) -> Reader:
    """Return a connected target. Raises TidemillError, which names `whom` if the kind can't be compared."""
    dialect = sink.kind.dialect
    if dialect is None:
        raise ConfigError(f"{whom} can't be compared")
    assert isinstance(sink.target, str)
    try:
        reader = dialect.read(sink.target, sink.options, feed)
    except ImportError as error:
        raise _missing(whom, error) from error
    if reader is None:
        raise ConfigError(f"{whom}: there is no database yet: run the feed")
    return reader


def _missing(whom: str, error: ImportError) -> ConfigError:
    return ConfigError(f"{whom} needs a package that isn't installed: {error}")
