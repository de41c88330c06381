"""Metrics: pulled from /metrics, and pushed."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tidemill.testing.progress import eventually, joined


def samples(text):
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_the_metrics_have_the_names_and_units_of_tidb_binlog(drainer, clock):
    found = samples(drainer().request("GET", "/metrics")[1])
    lag = found.pop("tidemill_checkpoint_lag_seconds{}")
    assert lag == clock.time() - 37 / 1000
    assert found == {
        "binlog_drainer_pump_position{nodeID=p1}": 40,
        "binlog_drainer_pump_position{nodeID=p2}": 39,
        "binlog_drainer_checkpoint_tso{}": 37,
        "binlog_drainer_event{type=DDL}": 1,
        "binlog_drainer_event{type=Insert}": 5,
        "binlog_drainer_disorder_binlog_count{}": 2,
        "binlog_drainer_ddl_jobs_total{}": 0,
    }


def test_without_the_package_the_answer_says_how_to_install_it(drainer, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert drainer().request("GET", "/metrics") == (
        501,
        "/metrics needs: pip install 'tidemill[metrics]'\n",
    )


@pytest.fixture
def gateway():
    """A Pushgateway that keeps what it was sent; the first push is refused."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.pushed.append((self.path, body))
            self.send_response(503 if len(self.server.pushed) == 1 else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.pushed = []
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    joined(thread)


def test_metrics_are_pushed_by_instance_also_after_a_push_that_failed(drainer, clock, gateway):
    drainer(pushgateway=f"http://127.0.0.1:{gateway.server_port}")
    eventually(lambda: gateway.pushed)

    def again():
        clock.advance(15)
        return len(gateway.pushed) > 1

    eventually(again)
    path, body = gateway.pushed[1]
    assert path == "/metrics/job/binlog/instance/d1"
    assert samples(body)["binlog_drainer_checkpoint_tso{}"] == 37
