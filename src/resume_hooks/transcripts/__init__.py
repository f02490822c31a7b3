"""Read the client's transcripts: lines, records, the live chain, token counts and placeholders.

The package also edits raw lines and checks a transcript's invariants. It may import ``system.text``
and the base modules, because those import no other package. It must not search for sessions or
write files, and opens only paths that its callers pass.
"""
