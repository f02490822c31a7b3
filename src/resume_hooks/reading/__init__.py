"""Read-only views of a session: an outline, passages within a character budget, a digest, a bundle of whole sessions.

This package may import ``redaction``, ``sessions`` and the packages that they import. It must not
write anything.
"""
