"""The index of everything that was ever said: in the state folder, made anew whenever it must be.

A SQLite table says which files were read, and how far; two indexes of tantivy's hold the words of
each record and of windows in turns, and where they stand, but no texts, which keeps all of it at a
tenth of the transcripts. A file is read on from the beginning of its last part if the bytes before
that are the same, else from the start. Each file stands for itself; what several sessions hold is
told apart only when hits are made.
"""
