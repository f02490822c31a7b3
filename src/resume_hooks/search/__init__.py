"""The session list and full-text search: parse the question, look its words up, rank the turns.

May import reading, sessions and what is below. Must not import archive or derive, or change a
transcript.

The question is parsed, and each word is looked up; a word without a match is also tried as a part
or a misspelling of others. Windows and records are ranked separately by their words (BM25). The two
rankings, and those of further wordings, are combined, and the texts of the best turns are read from
the transcripts. A turn that matches little is also a hit, marked as weak.
"""
