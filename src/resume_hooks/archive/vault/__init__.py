"""The vault: sessions kept beyond the client's period, packed, verified, rewritten, forgotten, brought back.

A session's folder holds a manifest, and what that names: links and copies laid out as the client lays them, or one
compressed pack. The manifest alone counts. Every change has the same three steps, under the session's lock: new names
are written, the manifest is replaced, what it no longer names is removed. So a kill at any line leaves the old state
or the new.

Ancestors are kept as a child is made; packs are made later, and read back against the hashes before what they replace
goes. The codec is xz at preset 1: 12.7 % of 45 MB at 42 MB/s in 20 MB of memory (preset 6: 11.0 % at 7 MB/s; zstd
needs Python 3.14).
"""
