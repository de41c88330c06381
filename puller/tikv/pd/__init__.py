"""The placement driver: members, timestamps, topology and the GC safe point."""
