"""Deleted sessions: moved here with all that belongs to them, and put back byte for byte."""
