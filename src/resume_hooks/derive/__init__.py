"""Everything that makes a child session: handoff, rollover, fork, trim, untrim, rewind, imports, and their plans.

May import archive and what is below. Must not search, and reaches no clipboard, terminal or network; a model is asked
through ``model.port`` alone.
"""
