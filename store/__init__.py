"""The scratch LSM for what exceeds memory (Store, Batch and Iterator over RocksDB), and durable files."""
