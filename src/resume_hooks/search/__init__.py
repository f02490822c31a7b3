"""The session list and full-text search: what was typed, what the index has of it, which turns answer best.

May import reading, sessions and what is below. Must not import archive or derive, or change a transcript.

What was typed is parsed, each word is looked up, SQLite gives the best records (bm25), which are gathered by turns
and weighed by what part of the query each covers; the texts of the best are read from the transcripts. What fits too
little is no hit.
"""
