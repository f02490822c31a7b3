"""Everything that makes a child session: handoff, rollover, fork, trim, untrim, imports, and their plans.

May import archive and what is below. Must not search, and reaches no clipboard, terminal or
network; a model is asked through ``model.port`` alone.

Each verb decides first (``plan`` gives a value) and acts once (``write``); a dry run is the plan,
unapplied. The one writer of children builds a file under a name that no client reads, checks it as
read back, links it to its name, and notes whose child it is. A handoff goes: digest, metadata,
lineage and next step as a summary record, the card as its answer.
"""
