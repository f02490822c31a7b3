"""The vault: sessions archived beyond the client's retention, and deleted ones: packed, verified, restored.

A session's folder contains a manifest and the compressed pack that it names. Only the manifest
counts. Every change has the same three steps under the session's lock: write a new pack and read it
back, replace the manifest, remove the packs that it no longer names. So a kill at any line leaves
the old state or the new one. The vault shares no bytes with the client's files. If a file was
shortened or rewritten, its archived version stays as an earlier state.

A session that the user deletes goes into the trash in the same format, and is then unlinked. Its
files are stored unpacked until a hook has time to pack them.

Measured (benchmarks/vault.py): a start has 50 ms. A link takes almost no time, a copy of 1 MB 3 ms,
a pack 30 ms. Packing at once means that there is only one format to test, and no links that change
with the client's files. A start or a verb packs up to 1 MB, the ``async`` hook the rest. The codec
is xz at preset 1: 12.7 % of 45 MB at 42 MB/s in 20 MB of memory (preset 6: 11.0 % at 7 MB/s; zstd
needs Python 3.14).
"""
