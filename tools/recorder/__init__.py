"""Owns the record of what a tree does: every door on many sessions, with frozen clock and ids, to be compared."""
