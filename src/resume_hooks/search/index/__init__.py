"""The full-text index of all sessions, in the state folder; it is rebuilt when necessary.

A SQLite table records how far each file was read. Two tantivy indexes contain the words of records
and of windows in turns with their positions, but no texts, so that the index is about a tenth of
the transcripts' size. A file is read again from the beginning of its last part if the bytes before
it are unchanged, else from the start. Each file is indexed separately; copies in several sessions
are recognised only in the hits.
"""
