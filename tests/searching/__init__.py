"""Search: what is found, where, and how it is shown."""
