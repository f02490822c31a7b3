"""The client's file format: lines, records, the live chain, tokens, raw edits, placeholders, invariants of a file.

May import the ground and ``system.text``. Must not look for sessions, write files, or open a path
it was not given.
"""
