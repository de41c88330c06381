"""The metrics of feeds for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from ..errors import ConfigError
from ..events import HistogramCounts
from .declared_metrics import METRICS, Metric, buckets
from .status import FeedStatus

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family


def registry_of(statuses: Callable[[], Iterable[FeedStatus]]) -> CollectorRegistry:
    """Return a registry with the metrics of feeds, whose statuses are asked for at each collection.

    Raises ConfigError without the package prometheus-client.
    """
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise ConfigError("metrics need: pip install 'tidemill[metrics]'") from error

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(statuses))
    return registry


def metrics_text(statuses: Iterable[FeedStatus]) -> str:
    """Return the metrics of feeds in Prometheus' text format. Raises ConfigError as `registry_of` does."""
    shown = list(statuses)
    registry = registry_of(lambda: shown)
    from prometheus_client import generate_latest

    return generate_latest(registry).decode()


class _Collector:
    """Gives the families to a registry of prometheus-client."""

    def __init__(self, statuses: Callable[[], Iterable[FeedStatus]]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Family]:
        statuses = list(self._statuses())
        for metric in METRICS:
            yield _family(metric, statuses)


def _family(metric: Metric, statuses: Sequence[FeedStatus]) -> Family:
    from prometheus_client import metrics_core as core

    labels = ("feed", *metric.labels)
    samples = [
        ((status.name, *names), value) for status in statuses for names, value in metric.samples(status)
    ]
    match metric.kind:
        case "gauge":
            gauge = core.GaugeMetricFamily(metric.name, metric.text, labels=labels)
            for names, value in samples:
                gauge.add_metric(names, float(_number(value)))
            return gauge
        case "counter":
            counter = core.CounterMetricFamily(metric.name, metric.text, labels=labels)
            for names, value in samples:
                counter.add_metric(names, float(_number(value)))
            return counter
        case "histogram":
            histogram = core.HistogramMetricFamily(metric.name, metric.text, labels=labels)
            for names, value in samples:
                counts = _counts(value)
                histogram.add_metric(names, buckets(metric.bounds, counts), counts.total)
            return histogram
        case "summary":
            summary = core.SummaryMetricFamily(metric.name, metric.text, labels=labels)
            for names, value in samples:
                counts = _counts(value)
                summary.add_metric(names, sum(counts.counts), counts.total)
            return summary
        case _:
            assert_never(metric.kind)


def _number(value: float | HistogramCounts) -> float:
    assert not isinstance(value, HistogramCounts)
    return value


def _counts(value: float | HistogramCounts) -> HistogramCounts:
    assert isinstance(value, HistogramCounts)
    return value
