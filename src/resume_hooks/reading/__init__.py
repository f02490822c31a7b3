"""Read-only views of a session: outline, passages within a budget of characters, digest, export, statistics.

May import redaction, sessions and what is below. Must not write anything but an export that was asked for.
"""
