"""Spark sessions: Java, Python, masters and executors."""
