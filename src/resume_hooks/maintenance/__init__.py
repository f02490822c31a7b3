"""Checks and repairs: fsck, doctor and bug reports.

May import everything below. Must not be loaded by a prompt that does not need it.
"""
