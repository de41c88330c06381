"""NDJSON files and Parquet archives."""
