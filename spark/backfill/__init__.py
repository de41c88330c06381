"""Parallel snapshots: Spark reads tables into sorted files, from which a feed continues."""
