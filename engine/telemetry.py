"""Metrics of feeds by OpenTelemetry, pushed by OTLP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Meta

from ..errors import ConfigError
from ..events import HistogramCounts
from .declared_metrics import METRICS, Metric, buckets
from .status import FeedStatus

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from opentelemetry.sdk.metrics.export import MetricReader

log = logging.getLogger("tidemill")

PUSH_SECONDS: Final = 5.0
"""Timeout of a push."""
_PATH: Final = "/v1/metrics"
Values: TypeAlias = Callable[[Metric, HistogramCounts], Iterable[tuple[dict[str, str], float]]]
"""Further attributes and the value, of one part of the counts of a histogram."""


@dataclass(frozen=True, kw_only=True)
class TelemetryOptions:
    """Where the feed's metrics are pushed to."""

    otlp: str = ""
    """URL of an OpenTelemetry collector, "http://collector:4318", to which metrics are pushed by OTLP over
    HTTP; empty: none."""
    interval_seconds: Annotated[float, Meta(ge=0.1)] = 15.0
    """Interval of pushes."""

    def __post_init__(self) -> None:
        if self.otlp and (
            urlsplit(self.otlp).scheme not in ("http", "https") or not urlsplit(self.otlp).hostname
        ):
            raise ConfigError(
                f"telemetry.otlp: {self.otlp!r} is no address of a collector: write http://host:4318 or https://…"
            )

    @property
    def endpoint(self) -> str:
        """The URL of the request: that of the collector with the path of OTLP, unless it names one."""
        return self.otlp if urlsplit(self.otlp).path.strip("/") else self.otlp.rstrip("/") + _PATH


class Telemetry:
    """Instruments that show the metrics of feeds to readers of the SDK."""

    def __init__(self, statuses: Callable[[], Iterable[FeedStatus]], readers: Sequence[MetricReader]) -> None:
        """`statuses` is called at each collection, in the reader's thread."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource

        resource = Resource.create({"service.name": "tidemill"})
        self._provider = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._statuses = statuses
        meter = self._provider.get_meter("tidemill")
        for metric in METRICS:
            self._add(meter, metric)

    def _add(self, meter: Meter, metric: Metric) -> None:
        """Make the instruments of a metric: of counts by bounds one for each of their parts."""
        if metric.kind == "gauge":
            read = partial(self._numbers, metric)
            meter.create_observable_gauge(metric.name, [read], description=metric.text)
        elif metric.kind == "counter":
            read = partial(self._numbers, metric)
            meter.create_observable_counter(metric.name, [read], description=metric.text)
        else:
            parts: dict[str, Values] = {"count": _count, "sum": _sum}
            if metric.kind == "histogram":
                parts["bucket"] = _buckets
            for suffix, values in parts.items():
                read = partial(self._parts, metric, values)
                meter.create_observable_counter(f"{metric.name}_{suffix}", [read], description=metric.text)

    def _numbers(self, metric: Metric, _options: CallbackOptions) -> Iterator[Observation]:
        from opentelemetry.metrics import Observation

        for status in self._statuses():
            for names, value in metric.samples(status):
                assert not isinstance(value, HistogramCounts)
                yield Observation(float(value), _attributes(metric, status, names))

    def _parts(
        self,
        metric: Metric,
        values: Values,
        _options: CallbackOptions,
    ) -> Iterator[Observation]:
        from opentelemetry.metrics import Observation

        for status in self._statuses():
            for names, counts in metric.samples(status):
                assert isinstance(counts, HistogramCounts)
                for more, value in values(metric, counts):
                    yield Observation(value, _attributes(metric, status, names) | more)

    def close(self) -> None:
        """Push once more, and stop. Idempotent; an error is logged."""
        try:
            self._provider.shutdown(timeout_millis=1000 * PUSH_SECONDS)
        except Exception as error:  # of an exporter: the feed's end doesn't depend on it
            log.warning("metrics were not pushed at the end: %s", error)


def open_telemetry(
    options: TelemetryOptions, statuses: Callable[[], Iterable[FeedStatus]]
) -> Telemetry | None:
    """Start to push the metrics of feeds; None if no collector is named. Raises ConfigError without the
    packages."""
    if not options.otlp:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    except ImportError as error:
        raise ConfigError("telemetry.otlp needs: pip install 'tidemill[opentelemetry]'") from error

    exporter = OTLPMetricExporter(options.endpoint, timeout=PUSH_SECONDS)
    reader = PeriodicExportingMetricReader(
        exporter,
        export_interval_millis=1000 * options.interval_seconds,
        export_timeout_millis=1000 * PUSH_SECONDS,
    )
    return Telemetry(statuses, [reader])


def _attributes(metric: Metric, status: FeedStatus, names: Sequence[str]) -> dict[str, str]:
    return {"feed": status.name, **dict(zip(metric.labels, names, strict=True))}


def _count(_: Metric, counts: HistogramCounts) -> list[tuple[dict[str, str], float]]:
    return [({}, sum(counts.counts))]


def _sum(_: Metric, counts: HistogramCounts) -> list[tuple[dict[str, str], float]]:
    return [({}, counts.total)]


def _buckets(metric: Metric, counts: HistogramCounts) -> list[tuple[dict[str, str], float]]:
    return [({"le": bound}, count) for bound, count in buckets(metric.bounds, counts)]
