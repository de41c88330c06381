"""Relays: durable copies of what a sink is about to apply, from which it can be applied again."""
