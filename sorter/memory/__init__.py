"""Everything in memory: simple, fast and without a bound."""
