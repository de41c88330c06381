"""The registry in etcd, which for TiDB is PD's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import etcd3
import grpc

from ...grpc.channel import KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS
from ...grpc.security import Security
from .registry import Record, RegistryUnavailable

_RETRY_SECONDS: Final = 10.0
"""Time for which an endpoint that failed isn't used, if there are others."""
_CONNECT_MS: Final = 5_000


class EtcdRegistry:
    """A client of etcd 3 that changes to the next endpoint after a failed call."""

    def __init__(
        self,
        endpoints: Sequence[str],
        security: Security | None = None,
        timeout_seconds: float = 5.0,
        prefix: str = "",
    ) -> None:
        """Make the client; nothing is connected yet. `timeout_seconds` is for each call. `prefix` begins the
        names of all keys in etcd.

        Raises ConfigError if a file of the security options can't be used.
        """
        credentials = security.credentials() if security is not None else None
        self._address = ",".join(endpoints)
        self._prefix = prefix
        self._client: Any = etcd3.MultiEndpointEtcd3Client(
            [_endpoint(address, credentials, alone=len(endpoints) == 1) for address in endpoints],
            timeout=timeout_seconds,
            failover=True,
        )

    def get(self, key: str) -> Record | None:
        with self._errors("get"):
            value, metadata = self._client.get(self._prefix + key)
        return None if metadata is None else Record(value, metadata.mod_revision)

    def list(self, prefix: str) -> dict[str, Record]:
        with self._errors("list"):
            entries = list(self._client.get_prefix(self._prefix + prefix, sort_order="ascend"))
        first = len(self._prefix)
        return {meta.key.decode()[first:]: Record(value, meta.mod_revision) for value, meta in entries}

    def put(self, key: str, value: bytes, revision: int, ttl_seconds: int = 0) -> int | None:
        """Write the value, as Registry.put; with `ttl_seconds` it is removed after that time."""
        calls, key = self._client.transactions, self._prefix + key
        with self._errors("put"):
            lease = self._client.lease(ttl_seconds) if ttl_seconds else None
            done, answers = self._client.transaction(
                compare=[calls.mod(key) == revision],  # 0 for a key that isn't there
                success=[calls.put(key, value, lease), calls.get(key)],
                failure=[],
            )
        if not done:
            return None
        ((_, metadata),) = answers[1]
        return int(metadata.mod_revision)

    def delete(self, key: str, revision: int) -> bool:
        """Remove the record if its revision is `revision`; return True if it is removed."""
        calls, key = self._client.transactions, self._prefix + key
        with self._errors("delete"):
            done, _ = self._client.transaction(
                compare=[calls.mod(key) == revision], success=[calls.delete(key)], failure=[]
            )
        return bool(done)

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except etcd3.Etcd3Exception as error:
            raise RegistryUnavailable(f"etcd at {self._address}: {doing}: {error or type(error)}") from error
        except grpc.RpcError as error:
            raise RegistryUnavailable(f"etcd at {self._address}: {doing}: {_reason(error)}") from error


def _endpoint(address: str, credentials: grpc.ChannelCredentials | None, *, alone: bool) -> object:
    host, _, port = address.rpartition(":")
    return etcd3.Endpoint(
        host,
        int(port),
        secure=credentials is not None,
        creds=credentials,
        time_retry=0.0 if alone else _RETRY_SECONDS,
        opts=[
            ("grpc.use_local_subchannel_pool", 1),  # a connection of its own, closed with this client
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),  # a restarted etcd is found soon
            ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),  # connection timeout
            # Without them, a connection on which nothing is answered is used until the system gives it up.
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ],
    )


def _reason(error: grpc.RpcError) -> str:
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return str(error)
