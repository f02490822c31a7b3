"""The session list and full-text search: what was typed, what the index has of it, which turns answer best.

May import reading, sessions and what is below. Must not import archive or derive, or change a transcript.
"""
