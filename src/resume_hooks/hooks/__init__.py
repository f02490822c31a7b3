"""Answers to the client's hook events: triggers, and the start and the end of a session.

These modules may import all lower layers, but not click, rich or pydantic, because a prompt waits
for every import.

Invariant: a prompt that is not a trigger always passes, even if the engine is broken. If a trigger
fails, the user sees the error and a remedy. An event that needs no work starts only a shell and one
or two programs. For other events ``prompt``, ``session``, ``context_notice`` or ``background``
runs, and imports only the modules that its answer needs.
"""
