"""Copies: Delta tables with the present rows."""
