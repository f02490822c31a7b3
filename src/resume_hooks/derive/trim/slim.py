"""A slim copy: a trimmed child for which nothing large stays, wherever in its live conversation it stands.

What a trim does, with a threshold so high that text stays as it was read, and no turn spared: a giant has to shrink.
"""

from __future__ import annotations

from resume_hooks.derive.trim import plan as trimming
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile

LARGE = 10_000
"""Characters of a content, and bytes of a record, from which on it is large."""

SLIM = Options(
    threshold=LARGE,
    keep_recent=0,
    only=("attachments", "media", "results", "inputs", "pasted"),
    min_savings=0,
    screen=LARGE,
)


def plan(session: SessionFile, where: Where) -> TrimPlan:
    """Decide on a slim copy. NothingToTrim if there is no conversation, UsageError for what can't be a parent."""
    return trimming.plan(trimming.read(session), where, SLIM, method="slim")
