"""Snapshots of one table of a binlog's server, read by SELECTs of its columns, keys and ranges."""
