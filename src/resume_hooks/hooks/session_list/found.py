"""The sessions that a list shows: a row each."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.errors import SessionNotFound
from resume_hooks.hooks.session_list.state import Listed
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.sessions.agents.registry import agent_at
from resume_hooks.system.text import one_line

PROMPT = 400  # characters of a first prompt that are searched


def found(cwd: str, where: Where, *, everywhere: bool, everyone: bool = False) -> Iterator[Listed]:
    """The sessions of the project of ``cwd``, or of all, newest first; those of this client, or of ``everyone``."""
    for row in listing.listed(cwd, where, everywhere=everywhere, everyone=everyone):
        try:
            prompt = agent_at(row.path, where).ends(row.path).first_prompt
        except SessionNotFound:
            continue  # deleted since it was listed
        yield Listed(row, one_line(prompt, PROMPT))
