"""Encoding and decoding of TiDB's keys, rows and schema jobs."""
