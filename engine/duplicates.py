"""Check that a feed's sinks differ."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ConfigError
from ..sink import SinkFactory


def reject_duplicates(sinks: Sequence[SinkFactory]) -> None:
    """Raise ConfigError unless there are sinks, with unique names and targets."""
    if not sinks:
        raise ConfigError('sink: none is named; for instance [[sink]] with url = "sqlite:///copy.db"')
    for field, what in (("name", "are called"), ("target", "write to")):
        values = [getattr(sink, field) for sink in sinks]
        for value in values:
            if values.count(value) > 1:
                raise ConfigError(f"sink.{field}: two sinks {what} {value!r}; each needs one of its own")
