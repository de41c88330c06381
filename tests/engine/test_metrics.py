"""Metrics in Prometheus' format and by OpenTelemetry: the same, and bounded."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from tidemill.engine.declared_metrics import METRICS
from tidemill.engine.lag import LAG_SECONDS, Lag, SinkHistograms
from tidemill.engine.metrics import metrics_text
from tidemill.engine.status import FeedStatus, SinkStatus, SnapshotStatus, first_status
from tidemill.engine.tables import TableStatus
from tidemill.engine.telemetry import Telemetry, TelemetryOptions, open_telemetry
from tidemill.engine.verification import VerifyStatus
from tidemill.errors import ConfigError
from tidemill.events import BATCH_ROWS, HistogramCounts, Wait, compose_ts

LAG = Lag(1.0, 2.0, 3.0, 4.0, 10.0)


def counted(bounds: tuple[float, ...]) -> HistogramCounts:
    return HistogramCounts((2, *[0] * (len(bounds) - 1), 1), 12.5)


def a_sink(name: str = "copy", tables: int = 2) -> SinkStatus:
    return SinkStatus(
        name,
        "sqlite:x",
        "a:1",
        compose_ts(1_700_000_000_500),
        10.0,
        12,
        workers=4,
        workers_busy=3,
        dead_letters=3,
        dead_letter_tables={f'shop."{number}"\n': number + 1 for number in range(tables)},
        safe_mode={"configured": 1},
        lag=LAG,
        histograms=SinkHistograms(
            counted(BATCH_ROWS), {stage: counted(LAG_SECONDS) for stage in Lag.__struct_fields__}
        ),
    )


def a_status(name: str = "shop", **more: Any) -> FeedStatus:
    first = first_status(name, "db", [a_sink(**more)], state="normal", now=1.0)
    return replace(
        first,
        lag=LAG,
        head_time=1_700_000_011.0,
        last_event_seconds=1.0,
        checkpoint_moved_seconds=2.0,
        log_hours_left=48.0,
        snapshot=SnapshotStatus("shop.a", 1, 2, 3, 0),
        waits=[Wait("sink copy", "answer", 3.0), Wait("sink lite", "answer", 7.0)],
        table_states={"following": 7, "paused": 30},
        tables=[TableStatus(f"shop.t{n}", "paused", 1.0, "a:1", 1, float(n)) for n in range(30)],
        verify=[VerifyStatus("copy", percent=25.0, whole_began=1_700_000_000.0, differences=7)],
    )


def values(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_has_samples_with_its_labels():
    families = {family.name: family for family in text_string_to_metric_families(metrics_text([a_status()]))}
    assert families.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        family = families[metric.name]
        assert (family.type, family.documentation) == (metric.kind, metric.text)
        assert family.samples, metric.name
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == {"feed", *metric.labels}


def test_the_values_are_those_of_the_status():
    found = values(metrics_text([a_status()]))
    feed, sink = ("feed", "shop"), ("sink", "copy")
    assert found["tidemill_feed_state", (feed, ("state", "normal"))] == 1
    assert found["tidemill_feed_state", (feed, ("state", "failed"))] == 0
    assert found["tidemill_lag_seconds", (feed, sink, ("stage", "total"))] == 10.0
    assert found["tidemill_checkpoint_timestamp_seconds", (feed, sink)] == 1_700_000_000.5
    assert found["tidemill_wait_seconds", (feed, ("kind", "answer"))] == 7.0
    assert found["tidemill_dead_letters_of_table", (feed, sink, ("table", 'shop."1"\n'))] == 2
    assert found["tidemill_tables", (feed, ("state", "paused"))] == 30
    assert found["tidemill_tables", (feed, ("state", "failed"))] == 0
    lags = {
        labels[1]: value for (name, labels), value in found.items() if name == "tidemill_table_lag_seconds"
    }
    assert lags == {("table", f"shop.t{n}"): n for n in range(10, 30)}
    assert found["tidemill_change_lag_seconds_bucket", (feed, ("le", "0.01"), sink)] == 2
    assert found["tidemill_change_lag_seconds_bucket", (feed, ("le", "+Inf"), sink)] == 3
    assert found["tidemill_verify_differences", (feed, sink)] == 7
    assert found["tidemill_verify_ratio", (feed, sink)] == 0.25
    assert found["tidemill_change_stage_seconds_sum", (feed, sink, ("stage", "commit_to_received"))] == 12.5


def test_the_page_is_bounded_whatever_the_number_of_tables():
    few = metrics_text([a_status(f"feed {number}", tables=20) for number in range(100)])
    many = metrics_text([a_status(f"feed {number}", tables=1_000) for number in range(100)])
    assert len(many.splitlines()) == len(few.splitlines())
    assert len(many.splitlines()) < 170 * 100


def test_a_feed_that_has_just_begun_has_the_metrics_that_are_known():
    first = first_status("new", "db", [SinkStatus("copy", "x", "", 0, None, 0)], state="starting", now=1.0)
    found = {name for name, _ in values(metrics_text([first]))}
    assert "tidemill_feed_state" in found
    assert "tidemill_lag_seconds" not in found


def collected(reader: InMemoryMetricReader) -> dict[tuple[str, tuple[tuple[str, Any], ...]], float]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        (metric.name, tuple(sorted((point.attributes or {}).items()))): point.value  # type: ignore[union-attr]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


def test_opentelemetry_has_the_same_values():
    reader = InMemoryMetricReader()
    statuses = [a_status(), a_status("other")]
    telemetry = Telemetry(lambda: statuses, [reader])
    found = {
        (name.removesuffix("_total"), labels): value for (name, labels), value in collected(reader).items()
    }
    wanted = {
        (name.removesuffix("_total"), labels): value
        for (name, labels), value in values(metrics_text(statuses)).items()
    }
    assert found == wanted
    telemetry.close()


class Collector(BaseHTTPRequestHandler):
    requests: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_metrics_are_pushed_to_a_collector_and_once_more_at_the_end():
    class Received(Collector):
        requests: list[tuple[str, bytes]] = []  # noqa: RUF012

    server = HTTPServer(("127.0.0.1", 0), Received)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        options = TelemetryOptions(otlp=f"http://127.0.0.1:{server.server_port}", interval_seconds=3600)
        telemetry = open_telemetry(options, lambda: [a_status()])
        assert telemetry is not None
        telemetry.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    ((path, body),) = Received.requests
    assert path == "/v1/metrics"
    import gzip

    request = ExportMetricsServiceRequest.FromString(
        gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    )
    (resource,) = request.resource_metrics
    names = {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
    assert "tidemill_lag_seconds" in names


@pytest.mark.parametrize("url", ["collector:4318", "grpc://collector:4317", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match=r"telemetry\.otlp: .* is no address of a collector"):
        TelemetryOptions(otlp=url)


def test_a_path_in_the_address_is_kept():
    assert TelemetryOptions(otlp="http://c:4318").endpoint == "http://c:4318/v1/metrics"
    assert TelemetryOptions(otlp="https://c/otlp/metrics").endpoint == "https://c/otlp/metrics"
    assert open_telemetry(TelemetryOptions(), list) is None


def test_a_page_of_a_thousand_feeds_is_below_twenty_megabytes():
    assert len(metrics_text([a_status(f"feed {number}") for number in range(1_000)])) < 20 << 20
