"""gRPC in a thread of its own: connections, TLS and backoff for every source that uses it."""

from __future__ import annotations

import os

# Before gRPC begins, which else writes a line about each connection that ends ("Got goaway").
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
