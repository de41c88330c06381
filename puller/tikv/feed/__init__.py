"""The change feed: streams, region workers and the resolved ts of each table."""
