"""Faults of the emulated cluster: each is a method and a word."""
