"""List sessions, and search the texts of all sessions.

This package may import the packages ``reading`` and ``sessions``, and those below them. It must not
import ``archive`` or ``derive``, and must not change a transcript.

A search parses the question and looks up each of its words in the index. If the index does not
contain a word, the search also tries it as a part of other words and as a misspelling. It ranks
windows (200 words of a turn) and records separately by their words (BM25), and combines both
rankings. If the question has several wordings, it also combines their rankings. It reads the texts
of the best turns from the transcripts. A turn that matches only weakly is also a hit, with the
strength "weak".
"""
