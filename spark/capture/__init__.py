"""A feed's sorted changes, buffered and served to Spark's tasks over Arrow Flight."""
