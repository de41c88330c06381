"""Matching of prewrites and commits to committed changes."""
