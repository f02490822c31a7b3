"""Checks and repairs: fsck, doctor, the report of a bug.

May import everything below. Must not be needed by a prompt that has no use for it.
"""
