"""The registry of a TiDB-Binlog cluster: which pumps and drainers there are, and in which state."""
