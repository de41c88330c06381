"""Message encodings: transactions and schema changes to keys and values, in the formats of other systems."""
