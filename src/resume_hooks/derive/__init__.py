"""Everything that makes a child session: handoff, rollover, fork, trim, untrim, imports, and their plans.

This package may import ``archive`` and the packages that ``archive`` imports. It must not search,
and must not use the clipboard, a terminal or the network. It calls a model only through
``model.port``.

Each verb first decides (``plan`` returns a value), then writes that plan once. A dry run stops
after the plan. One writer writes all children: it writes a file under a name that no client reads,
checks the bytes on disk, links the file to its final name, and records its parent. A handoff
contains, in this order: the digest, the metadata, a summary record with the lineage and the next
step, and the card as the answer to that record.
"""
