"""What a source's feed has pulled and sorted, kept for Spark's tasks behind Arrow Flight."""
