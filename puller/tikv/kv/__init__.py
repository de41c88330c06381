"""Reads of TiKV at a timestamp, past the locks in their way; and the region cache they use."""
