"""An etcd whose connection passes nothing any more, and isn't closed either."""

from __future__ import annotations

import pytest

from tidemill.puller.pump.registry import etcd
from tidemill.puller.pump.registry.node import PUMPS, key
from tidemill.puller.pump.registry.registry import RegistryUnavailable
from tidemill.testing.etcd import Etcd
from tidemill.testing.network_faults import NetworkFault, PlannedFaults
from tidemill.testing.progress import STALL_SECONDS, eventually
from tidemill.testing.proxy import Proxy

A = key(PUMPS, "a")


def test_a_silent_connection_is_replaced(private_etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd, "KEEPALIVE_MS", 500)
    monkeypatch.setattr(etcd, "KEEPALIVE_TIMEOUT_MS", 500)
    silence = NetworkFault("drop", "to server", 3_000, 10 * STALL_SECONDS, both=True)
    with Proxy(private_etcd.host, private_etcd.port, faults=PlannedFaults(silence)) as proxy:
        registry = etcd.EtcdRegistry([f"{proxy.host}:{proxy.port}"], timeout_seconds=0.5)
        registry.put(A, b"1", 0)

        def answers() -> bool:
            try:
                return registry.get(A) is not None
            except RegistryUnavailable:
                return False

        eventually(lambda: not answers())
        eventually(answers)
        registry.close()
