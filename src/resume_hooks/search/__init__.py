"""The session list and full-text search: what was typed, what the index has of it, which turns answer best.

May import reading, sessions and what is below. Must not import archive or derive, or change a
transcript.

What was typed is parsed, and each word looked up, as a part or a likeness of others where it is
nowhere. Windows and records are ranked by their words (BM25, an order each), both orders and those
of further wordings are taken together, and the texts of the best are read from the transcripts.
What fits little is a hit as well, and said to be weak.
"""
