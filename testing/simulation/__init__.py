"""Whole feeds in a simulated world: one thread, virtual time, and everything drawn from a seed."""
