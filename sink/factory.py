"""Factories of sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import ConfigError
from .rules import EVERYTHING, SinkRules
from .sink import Sink


class SinkFactory:
    """Makes the sinks of one target: each pipeline has one of its own.

    The thread of an earlier pipeline may still wait in its sink for the target, so no pipeline is ever given
    the sink of another one.
    """

    def __init__(self, make: Callable[[], Sink], rules: SinkRules = EVERYTHING) -> None:
        """`make` returns a new sink at each call, not opened yet; one gives `name` and `target`."""
        self.rules = rules
        """The events of the feed that the sinks get."""
        self._make = make
        self._last = make()
        self.name = self._last.name
        self.target = self._last.target
        self.traits = self._last.traits

    def new(self) -> Sink:
        """Return a sink that isn't open. Raises ConfigError if `make` returns the same one again."""
        sink = self._make()
        if sink is self._last:
            raise ConfigError(
                f"sink {self.name}: its function returned the same sink twice: return a new one at each call"
            )
        self._last = sink
        return sink


def reject_duplicates(sinks: Sequence[SinkFactory]) -> None:
    """Raise ConfigError unless there are sinks, with unique names and targets."""
    if not sinks:
        raise ConfigError('sink: none is named; for instance [[sink]] with url = "sqlite:///copy.db"')
    names, targets = [sink.name for sink in sinks], [sink.target for sink in sinks]
    for field, values, what in (("name", names, "are called"), ("target", targets, "write to")):
        for value in values:
            if values.count(value) > 1:
                raise ConfigError(f"sink.{field}: two sinks {what} {value!r}; each needs one of its own")
