"""Plan and write children. The verbs are: handoff, rollover, fork, trim, untrim and import.

The package may import ``archive`` and the packages that ``archive`` imports. It must not search
sessions, and must not use the clipboard, a terminal or the network. It calls a model only through
``model.port``.

Each verb first makes a plan, which is a value, and then writes this plan once. A dry run ends after
the plan. All children are written by the same writer: it writes a file under a name that clients
ignore, checks the bytes on disk, links the file to its final name, and records its parent.

The child of a handoff starts with a user record, which tells the model the lineage and the next
step. A record with the digest follows, and then an answer record, which shows the user a card. The
metadata is at the end.
"""
