"""Requests to a drainer's port, as TiDB-Binlog's tools send them."""

from __future__ import annotations

import ssl
from http.client import HTTPException
from typing import Final
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

import msgspec
from msgspec import Struct

from ....errors import SourceError
from ...grpc.security import Security
from ..registry.node import DRAINERS, NodeStatus, decode, key
from ..registry.registry import NodeRegistry
from .routes import DONE

REQUEST_SECONDS: Final = 10.0


class _Answer(Struct):
    message: str
    code: int


def send_action(registry: NodeRegistry, node_id: str, action: str, security: Security) -> str:
    """Send "pause" or "close" to a drainer, found in the registry; return its answer.

    Raises SourceError if there is no such drainer, or it doesn't answer or refuses, and RegistryUnavailable.
    """
    drainer = _find(registry, node_id)
    scheme = "http" if security.ca_path is None else "https"
    url = f"{scheme}://{drainer.host}/state/{quote(node_id, safe=':')}/{action}"
    try:
        context = _context(security)
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(Request(url, method="PUT"), timeout=REQUEST_SECONDS) as response:
            answer = msgspec.json.decode(response.read(), type=_Answer)
    except (OSError, HTTPException, msgspec.DecodeError) as error:
        raise SourceError(
            f"drainer {node_id} at {drainer.host}, whose state is {drainer.state}, doesn't answer: {error}"
        ) from error
    if answer.code != DONE:
        raise SourceError(f"drainer {node_id} at {drainer.host}: {answer.message}")
    return answer.message


def _find(registry: NodeRegistry, node_id: str) -> NodeStatus:
    where = key(DRAINERS, node_id)
    record = registry.get(where)
    if record is None:
        prefix = key(DRAINERS)
        known = ", ".join(each[len(prefix) :] for each in registry.list(prefix)) or "none"
        raise SourceError(f"no drainer {node_id!r} is registered; registered: {known}")
    return decode(where, record.value)


def _context(security: Security) -> ssl.SSLContext | None:
    if security.ca_path is None:
        return None
    context = ssl.create_default_context(cafile=security.ca_path)
    if security.cert_path is not None:
        context.load_cert_chain(security.cert_path, security.key_path)
    return context
