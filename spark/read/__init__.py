"""Batch and streaming readers of the data source, and the tasks they plan."""
