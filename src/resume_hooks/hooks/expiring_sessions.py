"""Sessions near their end: a start keeps them before the client deletes them, once it was asked whether it shall.

The shell asks only when it is time, by a stamp a project that is left here: ``due-<project folder>.json``. What does
not fit into the start is done by ``later``, the hook that nobody waits for, or at the next start.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from resume_hooks import settings
from resume_hooks.archive.retention import expiring, pending
from resume_hooks.archive.retention.expiring import Slice, archive_expiring
from resume_hooks.archive.vault import permission
from resume_hooks.archive.vault.policy import announcement
from resume_hooks.hooks import hook_state, reply
from resume_hooks.hooks.afterwards import UNDO, decided, keep_or_undo
from resume_hooks.paths import Where, private_folder
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.sessions.held_links import apart
from resume_hooks.storage.stored_settings import forget, store
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted

LIMIT = 0.03  # seconds that a start spends on keeping, the last session begun aside; the client waits

OWN, ALL = "due", "later"
"""What the names of stamps begin with: for what a start waits for, and for all that this client may delete."""

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def kept(event: dict[str, Any]) -> str:
    """Keep what ends soon, within the limit; the line to say of it, ``""`` for none and in headless runs.

    OSError where the state folder can't be written.
    """
    done = archived(event, _Watch(LIMIT), waiting=True)
    if done is None or reply.is_headless():
        return ""
    more = f", {done.left:,} more to come" if done.left else ""
    count = f"{done.kept:,} session{'' if done.kept == 1 else 's'}"
    said = f"archived {count} that the client deletes soon{more}" if done.kept else ""
    once = permission.line(Where()) if os.path.isdir(vault(Where())) else ""
    return " · ".join(filter(None, (said, once, announcement(Where()))))


def archived(event: dict[str, Any], is_over: Callable[[], bool], *, waiting: bool) -> Slice | None:
    """Keep what ends soon until time is over, and leave the stamps; None where another start is at it.

    OSError where the state folder can't be written.
    """
    project = os.path.basename(os.path.dirname(reply.field(event, "transcript_path")))
    if not project or not _SAFE.issuperset(project):
        return None
    claim = f"{OWN}-{project}.json"
    private_folder(Where().state, Where())
    private_folder(os.path.dirname(hook_state.place(claim)), Where())
    if not hook_state.begin(claim):
        return None
    try:
        made = time.time()
        done = archive_expiring(project, started_in(event), Where(), is_over, waiting=waiting)
        for kind in (OWN,) if waiting else (OWN, ALL):
            hook_state.keep(f"{kind}-{project}.json", {"look": int(done.look), "made": int(made)})
        return done
    finally:
        hook_state.end(claim)


def started_in(event: dict[str, Any]) -> str:
    """The folder that the client was started in, whose settings decide."""
    return os.environ.get("CLAUDE_PROJECT_DIR") or reply.field(event, "cwd") or os.getcwd()


class _Watch:
    """Tells whether time is over; it runs from the first question on, which is asked once something is to be kept."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    def __call__(self) -> bool:
        self._until = self._until or time.monotonic() + self._seconds
        return time.monotonic() > self._until


COPYING = 100  # seconds that are spent on the first copies; the module waits for 170

SWITCH_ON, SWITCH_OFF = "vault on", "vault off"

QUESTION = (
    "Claude Code deletes sessions{age}. Keep archived copies of them, and of those that you handed off, "
    "trimmed or forked, up to {room}, in a private folder?"
)
ANSWERS = {
    "Archive them": SWITCH_ON,
    "Archive none": SWITCH_OFF,
    f"Later: after {permission.PATIENCE_DAYS} days they are archived": "later",
}
"""What answers it, and the word that says it; the module takes the last one for no answer, and tells nobody."""


def vault_answer(event: dict[str, Any], where: Where) -> dict[str, Any]:
    """The question, or what came of its answer; ``{}`` where there is none. ResumeHooksError, OSError."""
    word = reply.field(event, "args")
    before, chosen = decided(word)
    if word in {SWITCH_ON, SWITCH_OFF} and permission.is_open(where):
        store("vault", word.split()[1], where)
        permission.settle(where)
        return keep_or_undo(f"{_vault_told(where)}.", word) | {"wait": "archiving"}
    if before == UNDO and _is_stored(chosen, where):
        forget("vault", where)
        permission.reopen(where)
        return {
            "text": f"Undone. {permission.awaited(where)} To decide, in a shell: {typed('config vault on')}, or off"
        }
    if before or word in {SWITCH_ON, SWITCH_OFF}:  # kept, or answered in another window meanwhile
        return {"text": _archived_now(event, where)}
    if word or not permission.is_open(where):
        return {}
    folder = started_in(event)
    has_to_copy = pending.pending_ids(where) or any(apart(where)) or expiring.outlook(folder, where).unkept
    if not has_to_copy or not permission.asks(where):
        return {}
    days = kept_days(folder, where)
    words = {
        "age": "" if days is None else f" after {counted(days, 'day')}",
        "room": settings.VAULT.replace("G", " GB"),
    }
    return {"ask": QUESTION.format(**words), "choices": list(map(list, ANSWERS.items())), "wait": "archiving"}


def _vault_told(where: Where) -> str:
    value = settings.load(where)["vault"].value
    what = "What Claude Code deletes" if value != "off" else "Nothing"
    return f"{what} is archived (vault {value})"


def _is_stored(word: str, where: Where) -> bool:
    """Whether what this answer stored is still the setting."""
    value, source = settings.load(where)["vault"]
    return source == "file" and (value == "off") == (word == SWITCH_OFF)


def _archived_now(event: dict[str, Any], where: Where) -> str:
    """Archive what goes soon, where the setting says so; what is told of both."""
    other = "on" if settings.load(where)["vault"].value == "off" else "off"
    said = f"{_vault_told(where)}. To change it, in a shell: {typed(f'config vault {other}')}"
    until = time.monotonic() + COPYING
    done = archived(event, lambda: time.monotonic() > until, waiting=False)
    return f"{said} · archived {done.kept:,} that go soon" if done and done.kept else said
