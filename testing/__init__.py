"""Private servers and workloads shared by tests, benchmarks and demos."""
