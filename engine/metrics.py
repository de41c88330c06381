"""A feed's status as metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from .status import FeedStatus

Sample: TypeAlias = tuple[dict[str, str], float]
"""Labels and value."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def metrics_text(status: FeedStatus) -> str:
    """Return gauges of the feed's sinks, each with the labels feed and sink."""
    sinks = [({"feed": status.name, "sink": sink.name}, sink) for sink in status.sinks]
    lines = [
        *_gauge(
            "tidemill_sink_lag_seconds",
            "Clock of the source minus the time of the checkpoint.",
            ((of, sink.lag_seconds) for of, sink in sinks if sink.lag_seconds is not None),
        ),
        *_gauge(
            "tidemill_dead_letters",
            "Number of changes that the target rejected, by table.",
            (
                (of | {"table": table}, count)
                for of, sink in sinks
                for table, count in sorted(sink.dead_letter_tables.items())
            ),
        ),
        *_gauge(
            "tidemill_safe_mode",
            "Number of times that safe mode was entered and not left, by reason.",
            (
                (of | {"reason": reason}, count)
                for of, sink in sinks
                for reason, count in sorted(sink.safe_mode.items())
            ),
        ),
    ]
    return "\n".join(lines)


def _gauge(name: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        named = ",".join(f'{label}="{one.translate(_ESCAPES)}"' for label, one in labels.items())
        yield f"{name}{{{named}}} {value:g}"
