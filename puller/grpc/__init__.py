"""gRPC in its own thread: connections, TLS and backoff, for every source that speaks it."""
