"""Store packed and verified copies of sessions in the vault, from which they can be restored.

Deleted sessions are stored in the same form in the trash.

A session's folder contains a manifest and the compressed pack that the manifest lists. A file that
the manifest does not list is ignored. Every change takes the same three steps under the session's
lock: write a new pack and read it back, replace the manifest, and remove the packs that the
manifest no longer lists. Even if the command is killed, the vault therefore contains either the old
state or the new one. The vault's files are never hard links to the client's files. If the client's
file was shortened or rewritten, its archived version is kept as an earlier state.

When the user deletes a session, its files first get a second name in the trash and are then
unlinked. A hook packs them later.

The start of a session may take 50 ms. According to benchmarks/vault.py, a link takes almost no time,
a copy of 1 MB takes 3 ms, and a pack of 1 MB takes 30 ms. Because packing is so fast, files are
packed immediately, and the vault has only one format. A session's start or a verb packs up to 1 MB,
and the ``async`` hook packs larger sessions. The codec is xz at preset 1. It compresses 45 MB to
12.7 % at 42 MB/s and needs 20 MB of memory (preset 6: 11.0 % at 7 MB/s; zstd needs Python 3.14).
"""
