"""What the client is to hold instead of its conversation, when it compacts: its own summary, or a trim without a model.

Invariant: whatever goes wrong, the conversation stays as it is where the user asked for a trim, and the client's own
compaction goes on where it wanted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.trim import in_client, plan
from resume_hooks.derive.trim.in_client import InClient, Shown
from resume_hooks.derive.trim.options import parse
from resume_hooks.errors import NothingToTrim, UsageError
from resume_hooks.hooks import hook_state, reply
from resume_hooks.hooks.request import time_limit
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records

LIMIT = 8.0
"""Seconds that deciding may take: the client waits, and nobody's prompt."""

HERE = "here"
"""The word behind ``/trim`` that asks for it in place."""

TITLE = "(trimmed in place by resume-hooks; no model is asked)"
"""What stands behind the client's own ``/compact``."""


def begin(text: str) -> dict[str, Any]:
    """What the module is to do for ``here``: run the client's compaction, which asks back. UsageError for options."""
    options = text.removeprefix(HERE).strip()
    parse(options)
    return {"compact": TITLE, "options": options}


def answer(event: dict[str, Any]) -> dict[str, Any]:
    """What the module answers the client's compaction with; ``{}`` leaves it to the client. Raises ResumeHooksError."""
    session_id, where = reply.field(event, "session_id"), Where()
    path = reply.transcript(event, session_id, where) if is_session_id(session_id) else None
    if path is None:
        raise NothingToTrim("There is nothing to trim: this session has no transcript yet", "Send a prompt first.")
    with time_limit(typed(f"trim {session_id}", where.environ), LIMIT):
        decided = _trimmed(locate.session_file(path), event, where)
    hook_state.keep(hook_state.answered(session_id), {"at": time.time()})
    return _as_json(decided, [])


def declining(event: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """What is answered in the place of a plan, made of the reason: the user is told who asked for one."""
    asked = isinstance(event.get("options"), str)
    return lambda text: {"skip": plain_line(text).removeprefix("resume-hooks: ")} if asked else {}


def _trimmed(session: SessionFile, event: dict[str, Any], where: Where) -> InClient:
    scanned = plan.read(session, settings.number("context_window"))
    options = parse(reply.field(event, "options"))
    decided = in_client.plan(scanned, _shown(event), options, where)
    saved = decided.decision.savings.tokens
    if saved < options.min_savings:
        raise NothingToTrim(f"A trim would save about {saved:,} tokens, too few", "Nothing was changed.")
    return decided


def _shown(event: dict[str, Any]) -> list[Shown]:
    """The messages that the client holds. UsageError for what can't be read."""
    rows = records.objects(event.get("messages"))
    if not rows:
        raise UsageError("Claude Code showed no messages", "Nothing was changed.")
    return [
        Shown(records.string(row, "handle"), records.string(row, "role"), _words(row, "calls"), _words(row, "results"))
        for row in rows
    ]


def _words(row: dict[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name)
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _as_json(decided: InClient, opening: list[str]) -> dict[str, Any]:
    before, after = decided.decision.before.tokens, decided.decision.after.tokens
    return {
        "opening": opening,
        **{name: getattr(decided, name) for name in ("messages", "texts", "results", "inputs", "gone")},
        "before": before,
        "after": after,
        "remark": f"{before:,} tokens before, about {after:,} now. What was taken out can be read: each placeholder "
        "names its original. /untrim has it all back, in a copy.",
    }
