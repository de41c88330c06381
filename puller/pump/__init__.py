"""TiDB-Binlog: binlogs of a TiDB cluster, pulled from its pumps."""
