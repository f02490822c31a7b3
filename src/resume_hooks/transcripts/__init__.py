"""Read the client's transcripts: lines, records, the live chain, token counts, placeholders.

The package also edits raw lines and checks a transcript's invariants. It may import ``system.text``
and the modules of the ground, which know no other package. It must not search for sessions, must
not write files, and must open only the paths that its callers pass.
"""
