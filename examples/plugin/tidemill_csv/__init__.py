"""Changes as lines of CSV: a sink that writes them, and a source that follows such a file."""
