"""Connections to a cluster, and what their errors mean."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from ...errors import Retryable, SinkError, TidemillError
from .address import Address
from .options import KafkaOptions
from .template import legal

FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_LOGIN: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_RIGHTS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_GONE: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
NOT_YET: Final = _GONE | {KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
"""Answers of brokers that don't know a new topic yet, or the new leader of a partition."""
_REFUSED: Final = frozenset(
    {
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._INVALID_ARG,
        KafkaError._UNSUPPORTED_FEATURE,
    }
)

_SILENT: Final = logging.Logger("librdkafka")
_SILENT.addHandler(logging.NullHandler())


class KafkaClient:
    """Settings of all connections of a sink, and the last problem that one of them reported."""

    def __init__(self, address: Address, options: KafkaOptions, client_id: str, writer: str = "") -> None:
        """`writer` is the writer's name in errors."""
        self.address: Final = address
        self.options: Final = options
        self.checkpoint_topic: Final = options.checkpoint_topic or legal(f"{client_id}-checkpoint")
        self._id: Final = client_id
        self._writer: Final = writer or client_id
        self._problem: KafkaError | None = None

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return librdkafka's settings of a connection; `more` have _ for the points."""
        options = self.options
        settings: dict[str, object] = {
            "bootstrap.servers": self.address.brokers,
            "client.id": self._id,
            "error_cb": self._note,
            "log_level": 0,
            "logger": _SILENT,  # else librdkafka writes to standard error; problems come by error_cb
        }
        if options.tls:
            settings |= {
                "ssl.ca.location": options.tls_ca,
                "ssl.certificate.location": options.tls_certificate,
                "ssl.key.location": options.tls_key,
            }
        if self.address.user:
            settings |= {
                "sasl.mechanism": options.sasl_mechanism,
                "sasl.username": self.address.user,
                "sasl.password": self.address.password,
            }
        protocol = ("SASL_" if self.address.user else "") + ("SSL" if options.tls else "PLAINTEXT")
        settings = {name: value for name, value in settings.items() if value != ""}
        settings["security.protocol"] = protocol
        return settings | {name.replace("_", "."): value for name, value in more.items()}

    def _note(self, error: KafkaError) -> None:
        """Keep a problem, but none of the consequences of a rejected login."""
        if not self.is_rejected:
            self._problem = error

    @property
    def problem(self) -> str:
        """Text of the last problem; empty if there was none."""
        return "" if self._problem is None else self._problem.str()

    @property
    def is_rejected(self) -> bool:
        """True if the brokers reject the login."""
        return self._problem is not None and self._problem.code() in _LOGIN

    def unavailable(self, doing: str) -> TidemillError:
        """Return the error for a cluster that didn't answer in time."""
        problem = self._problem
        if problem is not None and (self.is_rejected or _is_of_tls(problem)):
            return self.explained(problem, doing)
        reason = f": {self.problem}" if problem is not None else ""
        return Retryable(f"{self._where}: no answer in {self.options.timeout_seconds:g} s to {doing}{reason}")

    def explained(self, error: KafkaError, doing: str) -> TidemillError:
        """Return the error that a caller handles: SinkError if a repetition can't help, else Retryable."""
        code, where = error.code(), self._where
        if code == KafkaError._TIMED_OUT:
            return self.unavailable(doing)
        if code in _LOGIN:
            user = repr(self.address.user) if self.address.user else "without a user"
            return SinkError(f"{where}: the login of {user} was rejected: {error.str()}; check the URL")
        if _is_of_tls(error) and "certificate" in error.str():
            return SinkError(f"{where}: {error.str()}; check tls_ca, tls_certificate and tls_key")
        if code in _RIGHTS:
            return SinkError(f"{where}: no right to {doing}: {error.str()}; grant it to {self._principal}")
        if code in FENCED:
            return SinkError(
                f"{where}: another copy of {self._writer} has begun to write there, and this one is fenced "
                "off: keep one of them"
            )
        if code in _LARGE:
            return SinkError(
                f"{where}: a message is larger than its topic allows ({error.str()}): raise the topic's "
                "max.message.bytes, or lower encoding.max-message-bytes to it"
            )
        if code in _GONE:
            return SinkError(f"{where}: can't {doing}: a topic or partition doesn't exist any more")
        if code in _REFUSED:
            return SinkError(f"{where}: can't {doing}: {error.str()}")
        return Retryable(f"{where}: can't {doing} now: {error.str()}")

    @property
    def _where(self) -> str:
        return f"Kafka at {self.address.brokers}"

    @property
    def _principal(self) -> str:
        return f"user {self.address.user!r}" if self.address.user else "this client"

    @contextmanager
    def explaining(self, doing: str) -> Iterator[None]:
        """Convert errors of the driver; `doing` completes "can't ..."."""
        try:
            yield
        except KafkaException as error:
            raise self.explained(error.args[0], doing) from error


def _is_of_tls(error: KafkaError) -> bool:
    """Return True for an error of TLS; librdkafka reports some of them as lost connections."""
    return error.code() == KafkaError._SSL or "SSL routines" in str(error.str())


Now = Callable[[], float]
"""Returns the seconds since some fixed moment."""


class Patience:
    """Ends a wait for the cluster after `timeout_seconds` without progress."""

    def __init__(self, client: KafkaClient, now: Now) -> None:
        self._client: Final = client
        self._now: Final = now
        self._sign: object = None
        self._since = now()

    def check(self, sign: object, doing: str) -> None:
        """Note the sign of progress. Raises Retryable or SinkError if it is the same for too long."""
        if self._client.is_rejected:
            raise self._client.unavailable(doing)
        if sign != self._sign:
            self._sign, self._since = sign, self._now()
        elif self._now() - self._since >= self._client.options.timeout_seconds:
            raise self._client.unavailable(doing)
