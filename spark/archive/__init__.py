"""Archive compaction: the latest change of each key."""
