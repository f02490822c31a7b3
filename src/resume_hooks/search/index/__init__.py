"""The full-text index of all sessions, in the state folder; it is rebuilt when necessary.

A SQLite table records how far each file was read. Two tantivy indexes contain the words of records
and of windows in turns with their positions, but not the texts, so the index has about a tenth of
the transcripts' size. If a changed file's earlier bytes are unchanged, it is read again from the
start of its last part, otherwise from the start of the file. Each file is indexed separately. A
record that several sessions contain is recognised as a copy only when hits are built.
"""
