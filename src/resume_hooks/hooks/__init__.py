"""Answers to the client's hook events: triggers, cards, and the start and end of a session.

May import everything below, but not click, rich or pydantic: a prompt waits for each import.

Invariant: a prompt that is not a trigger always passes, even if the engine is broken. After a
trigger is recognised, every failure is reported with a remedy. An event that needs no work costs
the start of a shell and of one or two programs. Otherwise ``prompt``, ``session``,
``context_notice`` or ``background`` runs, and imports only the modules that its answer needs.
"""
