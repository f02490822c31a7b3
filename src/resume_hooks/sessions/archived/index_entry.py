"""What a note says of a session, so that it can be found without being opened: taken from its transcript's two ends."""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.sessions.archived.manifest import About
from resume_hooks.sessions.lookup import titles_of
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.head_tail import HeadTail

MOST = 100
"""Titles and pull requests that are noted; more are no session's."""


def about_of(path: str, parent: Sequence[str]) -> About:
    """What the transcript at ``path`` says; ``parent`` are the fields of the one it names. SessionNotFound if gone."""
    glance = HeadTail(path)
    return About(
        created=encodable(glance.created),
        ended=encodable(glance.ended),
        titles=tuple(sorted(map(encodable, titles_of(glance))))[:MOST],
        tag=encodable(glance.tag),
        pulls=tuple(sorted(map(encodable, glance.pull_requests)))[:MOST],
        listed=glance.is_listed,
        parent=tuple(map(encodable, parent)),
    )
