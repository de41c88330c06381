"""Kafka as a target: messages of an encoding, exactly once by transactions, or at least once."""
