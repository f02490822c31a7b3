"""Hook events in, replies out: triggers, cards, the start and the end of a session.

May import everything below, but not click, rich or pydantic: a prompt waits for each import.

Invariant: a prompt that is not ours passes, whatever is broken here; once a trigger was recognised,
every failure is told with a way out. A start, a turn's end or a prompt costs a shell and a program
or two until there is something to do; then ``prompt``, ``session``, ``context_notice`` or
``background`` runs, and imports what that one answer needs.
"""
