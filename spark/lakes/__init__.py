"""Lakes kept by Spark's tasks."""
