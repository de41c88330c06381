"""Offsets of a stream, for each kind of source."""
