"""The pumps of an emulated TiDB as nodes in a registry, and a feed that is a drainer there."""

from __future__ import annotations

import json
import ssl
from contextlib import suppress
from pathlib import Path
from sqlite3 import OperationalError
from threading import Event
from typing import Any
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from msgspec.structs import replace

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.status import FeedStatus
from tidemill.puller.grpc.security import Security
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import DRAINERS, PUMPS, NodeStatus, decode, encode, key
from tidemill.testing.feeds import Running

from ..puller.pump.service.pump_side import PLAIN, join
from ..tikv.place import TidbPlace
from .place import Following, PumpPlace


class Cluster:
    """Writes what the pumps of a TiDB write to their registry."""

    def __init__(self, tidb: Tidb, url: str, security: Security = PLAIN) -> None:
        self.tidb = tidb
        self.url = url
        self.security = security
        self.registry = open_registry(url, security)
        for node_id, (host, _) in tidb.pumps.states().items():
            status = NodeStatus(node_id=node_id, host=host, state="online")
            assert self.registry.put(key(PUMPS, node_id), encode(status), 0)

    def add_pump(self) -> str:
        """Start a pump as a real one starts: registered, then all drainers notified, then serving."""
        pump = self.tidb.add_pump(serving=False)
        status = NodeStatus(node_id=pump.node_id, host=pump.server.address, state="online")
        join(self.registry, status, Event().wait, self.security)
        pump.serving = True
        return pump.node_id

    def add_unnoticed(self) -> str:
        """Start a pump while no drainer runs."""
        pump = self.tidb.add_pump()
        status = NodeStatus(node_id=pump.node_id, host=pump.server.address, state="online")
        assert self.registry.put(key(PUMPS, pump.node_id), encode(status), 0)
        return pump.node_id

    def reconnect(self) -> None:
        self.registry.close()
        self.registry = open_registry(self.url, self.security)

    def set_pump(self, node_id: str, state: Any) -> None:
        self.tidb.pump_state(node_id, state)
        where = key(PUMPS, node_id)
        found = self.registry.get(where)
        assert found is not None
        status = replace(decode(where, found.value), state=state)
        assert self.registry.put(where, encode(status), found.revision)

    def drainer(self, node_id: str) -> NodeStatus | None:
        where = key(DRAINERS, node_id)
        found = self.registry.get(where)
        return None if found is None else decode(where, found.value)

    def tls_lines(self) -> list[str]:
        """Return the lines of a feed's source."""
        paths = {name: getattr(self.security, name) for name in ("ca_path", "cert_path", "key_path")}
        return [f'{name} = "{path}"' for name, path in paths.items() if path is not None]

    def http(self) -> tuple[str, ssl.SSLContext | None]:
        """Return the scheme of a drainer's port, and the context of its clients."""
        security = self.security
        if security.ca_path is None or security.cert_path is None:
            return "http", None
        context = ssl.create_default_context(cafile=security.ca_path)
        context.load_cert_chain(security.cert_path, security.key_path)
        return "https", context


class DrainerPlace(TidbPlace):
    """A table `shop.item`, and a feed that finds the pumps in the registry."""

    node_id = "d1"

    def __init__(self, directory: Path, cluster: Cluster) -> None:
        self.cluster = cluster
        super().__init__(directory, cluster.tidb)

    @property
    def source_url(self) -> str:
        return f"binlog://{self.server.pd_address}"

    @property
    def source_line(self) -> str:  # type: ignore[override]
        lines = [
            f'registry = "{self.cluster.url}"',
            f'node_id = "{self.node_id}"',
            'listen = "127.0.0.1:0"',
            "registry_timeout_seconds = 5",
            "detect_seconds = 0.2",
            "pd_retry_seconds = 0.2",
            "retry_seconds = 0.05",
            "job_seconds = 0.05",
            *self.cluster.tls_lines(),
        ]
        return "\n".join(lines)

    @property
    def state(self) -> str:
        record = self.cluster.drainer(self.node_id)
        return "" if record is None else record.state

    def get(self, path: str) -> Any:
        """Return the answer to a request to the drainer's port, parsed if it is JSON."""
        record = self.cluster.drainer(self.node_id)
        assert record is not None
        scheme, context = self.cluster.http()
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(f"{scheme}://{record.host}{path}", timeout=60) as answer:
            body = answer.read().decode()
            return json.loads(body) if "json" in answer.headers["Content-Type"] else body

    def has_all(self, running: Running) -> None:
        """Wait until the copy is as the source is."""

        def looks_the_same() -> bool:
            with suppress(OperationalError):  # the copy's table isn't there yet
                return self.copied() == self.present()
            return False

        running.wait_until(looks_the_same)


class InnerDrainer(DrainerPlace, PumpPlace):
    """As DrainerPlace, with the feed in this process."""

    def has(self, feed: Following, *ids: int) -> None:
        """Insert rows, each in a transaction, and wait until the copy has them."""
        for number in ids:
            self.insert(number)
        feed.until(lambda _status: self.copied() == self.present())


def is_following(status: FeedStatus) -> bool:
    return status.state == "normal" and bool(status.sinks[0].position)
