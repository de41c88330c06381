"""A TiDB cluster in your process: PD and stores that speak the real gRPC, for tests and demos."""
