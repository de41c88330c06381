"""How TiDB lays out its keys, rows and schema jobs: bytes and values, both ways."""
