"""The index of everything that was ever said: one SQLite file in the state folder, made anew whenever it must be.

A transcript is read on from where it was left if the bytes before that are the same, else from the start. Each record
has one row, at the session it was first said in; copies have rows of their own. Texts are not in the index
(contentless FTS5), which keeps it at a tenth of the transcripts. SQLite 3.40 can't take rows out of such an index:
rows that are gone are passed over by joining, and once they are the most it is built anew.
"""
