"""The vault's one question, inside the client: whether to archive what Claude Code deletes."""

from __future__ import annotations

import time
from typing import Any

from resume_hooks import settings
from resume_hooks.archive.retention import expiring, pending
from resume_hooks.archive.vault import permission
from resume_hooks.hooks import expiring_sessions, reply
from resume_hooks.paths import Where
from resume_hooks.sessions.held_links import apart
from resume_hooks.storage.stored_settings import store
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.invocation import typed

LIMIT = 100
"""Seconds that are spent on the first copies; the module waits for 170."""

QUESTION = (
    "Claude Code deletes {age} sessions. Shall resume-hooks archive them, and those that you handed off, "
    "trimmed or forked, up to {room}, in a private folder?"
)
ANSWERS = {
    "Archive them": "vault on",
    "Archive none": "vault off",
    f"Later: after {permission.PATIENCE_DAYS} days they are archived": "later",
}
"""What answers it, and the word that says it; the module takes the last one for no answer, and tells nobody."""

OVERTAKEN = "overtaken"
"""What is said where the user has typed something before the question could be shown."""


def answer(event: dict[str, Any], where: Where) -> dict[str, Any]:
    """The question, or what came of its answer; ``{}`` where there is none. ResumeHooksError, OSError."""
    word = reply.field(event, "args")
    if word.startswith("vault "):
        if permission.is_open(where):  # it was not answered in another window meanwhile
            store("vault", word.split()[1], where)
            permission.settle(where)
        value = settings.load(where)["vault"].value
        other = "off" if value != "off" else "on"
        what = "What Claude Code deletes" if value != "off" else "Nothing"
        said = f"{what} is archived (vault {value}). To change it, in a shell: {typed(f'config vault {other}')}"
        until = time.monotonic() + LIMIT
        done = expiring_sessions.archived(event, lambda: time.monotonic() > until, waiting=False)
        return {"text": f"{said} · archived {done.kept:,} that go soon" if done and done.kept else said}
    if word == OVERTAKEN:
        permission.put_off(where)
    if word or not permission.is_open(where) or not _has_to_copy(event, where) or not permission.asks(where):
        return {}
    days = kept_days(expiring_sessions.started_in(event), where)
    words = {"age": "old" if days is None else f"{days} days old", "room": settings.VAULT.replace("G", " GB")}
    return {"ask": QUESTION.format(**words), "choices": list(map(list, ANSWERS.items())), "wait": "archiving"}


def _has_to_copy(event: dict[str, Any], where: Where) -> bool:
    waiting = pending.pending_ids(where) or any(apart(where))
    return bool(waiting) or expiring.outlook(expiring_sessions.started_in(event), where).unkept > 0
