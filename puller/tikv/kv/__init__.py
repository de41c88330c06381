"""Reads of TiKV at a timestamp, with lock resolution and the region cache."""
