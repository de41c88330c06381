"""TiDB rows and DDL jobs into items."""
