"""One feed's life: its options, pipeline, checkpoints, status and preflight checks."""
