"""Read-only views of a session: outline, passages within a budget of characters, digest, a bundle of whole sessions.

May import redaction, sessions and what is below. Must not write anything.
"""
