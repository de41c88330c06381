"""Databases: sessions, types, tables, and the statements that change and define them."""
