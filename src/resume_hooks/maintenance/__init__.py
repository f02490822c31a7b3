"""Checks and repairs: fsck, doctor and bug reports.

May import every lower layer. A prompt must not load this package unless it needs it.
"""
