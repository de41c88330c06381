"""Prewrites and commits, matched into committed changes."""
