"""Faults of the emulated cluster, each a method and a word."""
