"""A small TiDB on top of the emulated cluster: DDL statements and transactions of rows."""
