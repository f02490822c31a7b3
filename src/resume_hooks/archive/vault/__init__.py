"""The vault: packed and verified copies of sessions, both archived and deleted ones, which can be restored.

A session's folder contains a manifest and the compressed pack that the manifest names. Only the
manifest counts. Every change has the same three steps under the session's lock: write a new pack
and read it back, replace the manifest, remove the packs that the manifest no longer names. So a
kill at any line leaves the old state or the new one. The vault shares no bytes with the client's
files. If a file was shortened or rewritten, its archived version is kept as an earlier state.

A session that the user deletes is copied to the trash in the same format, and its files are then
unlinked. The copies are unpacked until a hook has time to pack them.

Measured (benchmarks/vault.py): a start may take 50 ms. A link takes almost no time, a copy of 1 MB
takes 3 ms, a pack of 1 MB 30 ms. Files are packed immediately, so there is only one format to test,
and there are no links that change with the client's files. A start or a verb packs up to 1 MB, the
``async`` hook the rest. The codec is xz at preset 1: it compresses 45 MB to 12.7 % at 42 MB/s in 20
MB of memory (preset 6: 11.0 % at 7 MB/s; zstd needs Python 3.14).
"""
