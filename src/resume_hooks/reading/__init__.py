"""Read-only views of a session: an outline, passages of limited length, a digest, and bundles.

This package may import ``redaction``, ``sessions`` and the packages that they import. It must not
write anything.
"""
