"""Store the words of all sessions in an index, which is rebuilt when necessary.

The index is in the state folder. A SQLite table records how far each file was read. Two tantivy
indexes contain the words, with their positions: one those of records, the other those of windows
(200 words of a turn). The indexes do not contain the texts, so their size is only about a tenth of
the transcripts' size.

A file is indexed in parts of about 2 MB. If a file has only grown, it is read again from the start
of its last part. If its earlier bytes have changed, it is read again from its beginning. Each file
is indexed separately, even if it contains copies of another file's records. A search recognizes
such copies when it assembles the hits.
"""
