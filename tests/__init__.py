"""The tests. Their folders have the same structure as ``src``."""
