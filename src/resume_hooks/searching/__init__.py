"""Search: what was typed, what the index has of it, which turns answer best, and how they are shown."""
