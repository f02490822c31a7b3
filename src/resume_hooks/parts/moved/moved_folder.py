"""A folder without sessions whose repository had some elsewhere: one question inside the client, else one line."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from resume_hooks.errors import UsageError
from resume_hooks.hooks import reply
from resume_hooks.parts.moved import rehome
from resume_hooks.paths import Where, canonical
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted, plain_line

CHOICES = [["Copy them here", "yes"], ["Not now", "no"]]
"""The last one is also what no answer means."""

COPYING = 150.0
"""Seconds after which no more sessions are copied; the module waits for 170."""

LIMIT = 5.0
"""Seconds for what sessions tell, where no start noted anything; nobody waits."""


def line(event: dict[str, Any]) -> str:
    """What a start says, by what earlier starts noted alone; ``""`` where nothing fits."""
    new, where = _here(event), Where()
    found = rehome.noted_before(new, where)
    if len(found) != 1:
        return ""
    return f"{_told(found[0], where)}; to copy them here, in a shell in this folder: {typed('rehome')}"


def answer(event: dict[str, Any]) -> dict[str, Any]:
    """The question, or once it is answered what was done; ``{}`` where no other folder fits, or the answer is no."""
    said, new, where = reply.field(event, "args"), _here(event), Where()
    if said not in {"", "yes"}:
        return {}
    try:
        old = rehome.former_folder(new, where, LIMIT)
    except UsageError:
        return {}
    sessions = rehome.spoken_sessions(old, where)
    if not said:
        question = f"{_told(old, where)}. Copy them here? The sessions themselves stay as they are."
        return {"ask": question, "choices": CHOICES, "wait": f"copying {counted(len(sessions), 'session')}"}
    return {"text": _copied(sessions, new, where)}


def _copied(sessions: Sequence[SessionFile], new: str, where: Where) -> str:
    """Copy them, the oldest first, as far as time allows; the sentence to say of it."""
    until, made, failed, late = time.monotonic() + COPYING, 0, list[str](), 0
    for session in sorted(sessions, key=lambda one: one.mtime):
        if time.monotonic() > until:
            late += 1
            continue
        done, left = rehome.rehome([session], new, where, lambda _done, _total: None, dry_run=False)
        made += len(done)
        failed += [one.why for one in left if one.why != rehome.THERE]
    missing = f"; {counted(len(failed), 'session')} could not be: {failed[0]}" if failed else ""
    rest = f"; for the other {late:,}, in a shell in this folder: {typed('rehome')}" if late else ""
    return f"{counted(made, 'session')} copied here{missing}; /sessions lists them{rest}"


def _here(event: dict[str, Any]) -> str:
    return canonical(os.environ.get("CLAUDE_PROJECT_DIR") or reply.field(event, "cwd") or os.getcwd())


def _told(old: str, where: Where) -> str:
    count = counted(len(rehome.spoken_sessions(old, where)), "session")
    return f"This repository was in {plain_line(old)}, which has {count} and is gone"
