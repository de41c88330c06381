"""A drainer's metrics in Prometheus' text format, pulled or pushed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from ....actors import Clock
from ....errors import ConfigError
from ....events import physical_ms
from .progress import DrainerProgress

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

log = logging.getLogger("tidemill.puller")

JOB: Final = "binlog"
PUSH_TIMEOUT_SECONDS: Final = 10.0


class Metrics:
    """The metrics of one drainer, read from its progress whenever they are asked for.

    Names with binlog_drainer_ are TiDB-Binlog's, with its units: a position or checkpoint is the time of the
    ts in milliseconds. Methods raise ImportError without the package prometheus-client.
    """

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, clock: Clock, progress: Callable[[], DrainerProgress]) -> None:
        self._clock = clock
        self._progress = progress

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self.registry())

    def registry(self) -> CollectorRegistry:
        """Return a registry with these metrics only."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def collect(self) -> Iterator[Any]:
        """Yield the families, for the registry."""
        from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily

        progress = self._progress()
        checkpoint_ms = physical_ms(progress.checkpoint_ts)
        positions = GaugeMetricFamily(
            "binlog_drainer_pump_position", "Time of the last binlog of each pump (ms).", labels=["nodeID"]
        )
        for node_id, ts in sorted(progress.pump_positions.items()):
            positions.add_metric([node_id], physical_ms(ts))
        yield positions
        yield GaugeMetricFamily(
            "binlog_drainer_checkpoint_tso",
            "Time of the checkpoint (ms).",
            checkpoint_ms,
        )
        lag = self._clock.time() - checkpoint_ms / 1000
        yield GaugeMetricFamily(
            "tidemill_checkpoint_lag_seconds", "Clock of this machine minus the checkpoint's time.", lag
        )
        # As untyped, since a counter's name would get the suffix _total.
        for name, text, label, counts in (
            ("event", "Number of row and schema changes.", "type", progress.events),
            ("error_count", "Number of errors.", "type", progress.errors),
        ):
            family = UnknownMetricFamily(f"binlog_drainer_{name}", text, labels=[label])
            for key, count in sorted(counts.items()):
                family.add_metric([key], count)
            yield family
        for name, text, count in (
            ("disorder_binlog_count", "Number of binlogs out of order.", progress.disorders),
            ("ddl_jobs_total", "Number of DDL jobs.", progress.ddl_jobs),
        ):
            yield UnknownMetricFamily(f"binlog_drainer_{name}", text, count)


class MetricsPush:
    """Pushes the metrics to a Pushgateway each `interval_seconds`, in its own thread.

    As TiDB-Binlog does: job "binlog", grouped by instance, other groups of the job are left alone. A failed
    push is logged, and the next one is tried.
    """

    def __init__(
        self, url: str, node_id: str, metrics: Metrics, clock: Clock, interval_seconds: float
    ) -> None:
        """Raises ConfigError without the package."""
        try:
            from prometheus_client import pushadd_to_gateway
        except ImportError as error:
            raise ConfigError("source.pushgateway needs: pip install 'tidemill[metrics]'") from error
        self._push = pushadd_to_gateway
        self._url = url
        self._node_id = node_id
        self._registry = metrics.registry()
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._wake = Event()
        self._stopping = False
        self._thread = Thread(target=self._run, name="tidemill-metrics")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after a push under way. Idempotent."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._push(
                    self._url,
                    job=JOB,
                    registry=self._registry,
                    grouping_key={"instance": self._node_id},
                    timeout=PUSH_TIMEOUT_SECONDS,
                )
            except OSError as error:
                log.warning("metrics were not pushed to %s: %s", self._url, error)
            alarm = self._clock.call_at(self._clock.now() + self._interval_seconds, self._wake.set)
            self._wake.wait()
            self._wake.clear()
            alarm.cancel()
