"""The life cycle of a feed: options, pipeline, checkpoints, status and preflight checks."""
