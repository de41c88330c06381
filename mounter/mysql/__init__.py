"""Decoding of binlog rows and statements into items."""
