"""Binlog rows and statements into items."""
