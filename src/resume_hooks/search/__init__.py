"""The session list and full-text search: parse the question, look its words up, rank the turns.

May import reading, sessions and what is below. Must not import archive or derive, or change a
transcript.

The question is parsed, and each of its words is looked up in the index. A word that the index does
not contain is also tried as a part or a misspelling of other words. Windows and records are ranked
separately by their words (BM25). Both rankings are combined, also with those of further wordings,
and the texts of the best turns are read from the transcripts. A turn that matches only weakly is
also a hit, and is marked as weak.
"""
