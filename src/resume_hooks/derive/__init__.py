"""Everything that makes a child session: handoff, rollover, fork, trim, untrim, imports, and their plans.

May import archive and what is below. Must not search, and reaches no clipboard, terminal or
network; a model is asked through ``model.port`` alone.

Each verb first decides (``plan`` returns a value), then writes that plan once. A dry run stops
after the plan. All children go through one writer: it writes a file under a name that no client
reads, checks the bytes on disk, links the file to its final name, and records its parent. A handoff
has this order: digest, metadata, lineage and next step in a summary record, and the card as the
answer to it.
"""
