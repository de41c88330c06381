"""Chunks of tables: planned by keys, read in views, and made exact at a position."""
