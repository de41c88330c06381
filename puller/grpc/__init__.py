"""gRPC in a thread of its own: connections, TLS and backoff for every source that uses it."""
