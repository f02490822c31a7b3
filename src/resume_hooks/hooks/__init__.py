"""Hook events in, replies out: triggers, cards, the start and the end of a session.

May import everything below, but not click, rich or pydantic: a prompt waits for each import.
"""
