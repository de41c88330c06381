"""Decoding of TiDB rows and DDL jobs into items."""
