"""The vault: sessions archived beyond the client's period, and deleted ones: packed, verified, brought back.

A session's folder holds a manifest and the compressed pack that it names; the manifest alone
counts. Every change has the same three steps, under the session's lock: a new pack is written and
read back, the manifest is replaced, what it no longer names is removed. So a kill at any line
leaves the old state or the new. The vault shares no byte with the client's files; a file that is
shortened or rewritten leaves what was archived of it as an earlier state.

What the user deletes is archived in the same form, in the trash, and then unlinked. Nothing waits
for its packing: it is stored as it is until a hook has the time.

Measured (benchmarks/vault.py): a start has 50 ms; a link takes none of it, a copy of 1 MB 3 ms, a
pack 30 ms. Packing at once leaves one form to prove and no links that change with the client's
files. A start or a verb packs up to 1 MB, the hook that nobody waits for the rest. The codec is xz
at preset 1: 12.7 % of 45 MB at 42 MB/s in 20 MB of memory (preset 6: 11.0 % at 7 MB/s; zstd needs
Python 3.14).
"""
