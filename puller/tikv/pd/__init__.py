"""The client of the placement driver: members, timestamps, topology and the GC safe point."""
