"""DuckDB as a database to write, define and read."""
