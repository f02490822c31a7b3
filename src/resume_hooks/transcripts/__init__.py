"""The client's file format: lines, records, the live chain, tokens, raw edits, placeholders, a file's invariants.

May import the ground and ``system.text``. Must not search for sessions, write files, or open other
paths than its callers pass.
"""
