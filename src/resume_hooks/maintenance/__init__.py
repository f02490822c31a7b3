"""Checks and repairs: fsck, audit, scrub, doctor.

May import everything below. Must not be needed by a prompt that has no use for it.
"""
