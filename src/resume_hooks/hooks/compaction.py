"""What the client is to hold instead of its conversation when it compacts: a trim, or a digest with the last turns.

Invariant: whatever goes wrong, the conversation stays as it is where the user asked for a trim, and the client's own
compaction goes on where it wanted one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.trim import in_client, plan
from resume_hooks.derive.trim.in_client import InClient, Reach, ShownMessage
from resume_hooks.derive.trim.options import KEEP_RECENT, parse
from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.errors import NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import hook_state, reply
from resume_hooks.hooks.after_compaction import MOST, SECTIONS, given_back
from resume_hooks.hooks.request import time_limit
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.entries import SECTIONS as HANDOFF_SECTIONS
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.storage.stored_settings import store
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records

LIMIT = 10.0
"""Seconds that deciding may take: the client waits, and nobody's prompt."""

SETTING = "compaction"
TRIM, HANDOFF, CLIENT = "trim", "handoff", "client"
"""The setting, and what it says the client does when a session is full."""

PAUSES = (0.2, 0.4)
"""Seconds after which the file is read again: the client may not have written yet what it shows."""

HERE = "here"
"""The word behind ``/trim`` that asks for it in place."""

AUTO = "auto"
"""What the client says it compacts for when nobody asked."""

SHRUNK = 0.5
"""The part of the context that is aimed at when the client compacts by itself."""

FITS = 0.8
"""The part of it that an answer may take at most: more, and the client would soon compact again."""

DIGEST = 9_000
"""Characters of the digest and the lineage where only the last turns stay with them."""

ASKED = "asked-compaction.json"
"""The note that the user was asked what is to happen when a session is full."""

DONE = "The session was full, and was made smaller here (compaction {chosen}). "
LEFT = "Compaction {chosen} would have left too much, so Claude Code makes its own summary."
"""What is told where the client compacted by itself: nobody asked for it at that moment."""

QUESTION = "When a session is full, what shall Claude Code do? Now {percent} % of this one's context is used."
ANSWERS = {
    "Trim it in place: old tool output goes, no model is asked": TRIM,
    "Hand off in place: a digest and the last turns stay, no model is asked": HANDOFF,
    "Its own summary, as now": CLIENT,
}
"""What answers that, and the value of the setting."""

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
    work = _automatic if reply.field(event, "trigger") == AUTO else _asked
    for pause in PAUSES:
        with contextlib.suppress(PlanOutdated):
            return work(locate.session_file(path), event, where)
        time.sleep(pause)
    return work(locate.session_file(path), event, where)


def _asked(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """What the client is to hold where a person asked for a trim."""
    with time_limit(typed(f"trim {session.session_id}"), LIMIT):
        scanned = plan.read(session, settings.number("context_window"))
        options = parse(reply.field(event, "options"))
        decided = in_client.plan(scanned, _shown(event), options, where)
    saved = decided.decision.savings.tokens
    if saved < options.min_savings:
        raise NothingToTrim(f"A trim would save about {saved:,} tokens, too few")
    return _given(session.session_id, decided, decided.decision.after.tokens, "")


def declining(event: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """What is answered in the place of a plan, made of the reason: the user is told who asked for one."""
    asked = isinstance(event.get("options"), str)
    return lambda text: {"skip": plain_line(text).removeprefix("resume-hooks: ")} if asked else {}


def offer(event: dict[str, Any]) -> dict[str, Any]:
    """Ask once what is to happen when a session is full; or take the answer. Raises ResumeHooksError, OSError."""
    word = reply.field(event, "args")
    if not word.isdigit():
        value = store(SETTING, word)
        one, other = (each for each in (TRIM, HANDOFF, CLIENT) if each != value)
        later = typed(f"config {SETTING} {one}")
        return {"text": f"{SETTING} is {value}. To change it, in a shell, {other} in place of {one} as well: {later}"}
    if int(word) < asks_from().get("asks", 101):
        return {}
    hook_state.keep(ASKED, {"at": time.time()})
    return {"ask": QUESTION.format(percent=word), "choices": [list(row) for row in ANSWERS.items()]}


def asks_from() -> dict[str, Any]:
    """The per cent of a context from which on there is something to ask; nothing where it was asked, or is set."""
    percent = settings.number("notice_percent")
    is_answered = settings.load()[SETTING].source != "default" or hook_state.find(ASKED)
    return {} if not percent or is_answered else {"asks": percent}


def _automatic(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """What the client is to hold where it compacts by itself; no messages leave it to it, by choice or for the size."""
    chosen = settings.load()[SETTING].value
    if chosen == CLIENT:
        return {}
    started = time.monotonic()
    told, most = (HANDOFF_SECTIONS, DIGEST) if chosen == HANDOFF else (SECTIONS, MOST)
    facts = given_back(session.session_id, session.path, told, most, LIMIT / 2)
    if chosen == HANDOFF and not facts:
        return {"remark": LEFT.format(chosen=chosen)}
    with time_limit(seconds=LIMIT - (time.monotonic() - started)):
        scanned, shown = plan.read(session, settings.number("context_window")), _shown(event)
        aim = round(scanned.context.tokens * SHRUNK)
        reach = _reach(scanned, shown, aim if chosen == HANDOFF else 0)
        decided = in_client.plan(scanned, shown, parse(f"--target-tokens {aim}"), where, reach)
    dropped = _tokens(scanned, shown[: reach.start])
    after = round(decided.decision.after.tokens - dropped + len(facts) / scanned.scale.ratio)
    if after > scanned.context.tokens * FITS or scanned.context._replace(tokens=after).compacts_at_once:
        return {"remark": LEFT.format(chosen=chosen)}
    given = _given(session.session_id, decided, after, facts)
    return {**given, "remark": DONE.format(chosen=chosen) + given["remark"]}


def _reach(scanned: SessionScan, shown: Sequence[ShownMessage], aim: int) -> Reach:
    """What is built anew: all before the last prompt; with an ``aim`` the last turns before it that fit in there."""
    prompts = {node.uuid for node in scanned.transcript.chain if node.prompt}
    known = {node.uuid for node in scanned.transcript.chain}
    starts = [
        place for place, one in enumerate(shown) if one.stays and (one.handle in prompts or one.handle not in known)
    ]
    end = starts[-1] if starts else len(shown)
    if not aim:
        return Reach(0, end)
    recent = [place for place in starts[:-1][-KEEP_RECENT:] if place < end]
    fitting = (place for place in recent if _tokens(scanned, shown[place:]) <= aim)
    return Reach(next(fitting, end), end)


def _tokens(scanned: SessionScan, shown: Sequence[ShownMessage]) -> float:
    """About what messages come to."""
    handles = {one.handle for one in shown}
    return sum(node.characters for node in scanned.transcript.chain if node.uuid in handles) / scanned.scale.ratio


def _shown(event: dict[str, Any]) -> list[ShownMessage]:
    """The messages that the client holds. UsageError for what can't be read."""
    rows = records.objects(event.get("messages"))
    if not rows:
        raise UsageError("Claude Code showed no messages")
    return [
        ShownMessage(
            records.string(row, "handle"), records.string(row, "role"), _words(row, "calls"), _words(row, "results")
        )
        for row in rows
    ]


def _words(row: dict[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name)
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _given(session_id: str, decided: InClient, after: int, opening: str) -> dict[str, Any]:
    """The answer as the module takes it; a note is left that nothing was lost."""
    before = decided.decision.before.tokens
    hook_state.keep(hook_state.answered(session_id), {"at": time.time()})
    return {
        "opening": [opening] if opening else [],
        **{name: getattr(decided, name) for name in ("messages", "texts", "results", "inputs", "gone")},
        "before": before,
        "after": after,
        "remark": f"{before:,} tokens before, about {after:,} now. What was taken out can be read: each placeholder "
        "names its original. /untrim has it all back, in a copy.",
    }
