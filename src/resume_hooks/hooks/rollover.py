"""``>rollover``: the child with the digest at once, then a model's summary in it, or plain words on why there is none.

Invariant: one rollover is paid for once. What is typed again, with nobody asking anything since, shows the same child.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from resume_hooks import settings
from resume_hooks.derive.child.existing import standing_rollover
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.claude_headless import ClaudeHeadless
from resume_hooks.derive.summary import rollover
from resume_hooks.errors import NothingToHandOff
from resume_hooks.hooks import hook_state
from resume_hooks.hooks.answer import Answer, time_limit
from resume_hooks.hooks.cards import CLEARED, child_card
from resume_hooks.hooks.offer_clear import let_wait
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import one_line, plain_line

WHOLE = 145.0
"""Seconds that a rollover may take before its card: the clipboard has its own two of 150."""

REPLACING = 5.0
"""Seconds of them that are kept for putting the summary into the child."""

PLANNING = 10.0
"""Seconds in which the child with the digest is decided on."""

WIDEST = 300
"""Characters of a fact on the card."""

_PREFIX = "rollover-"


UNFINISHED = "The summary is not in it: it is still being written, or was interrupted."


def answer(trigger: Trigger, path: str | None, session_id: str, window: int) -> Answer:  # noqa: ARG001 - a lane's form
    """Roll over the session at ``path`` (None: no transcript yet). Raises ResumeHooksError where no child was made."""
    if path is None:
        raise NothingToHandOff("There is nothing to hand off: this session has no transcript yet")
    deadline = time.monotonic() + WHOLE
    parent = locate.session_file(path)
    with time_limit(_shell(parent), PLANNING):
        standing = _standing(parent, trigger)
        if standing is not None:
            return standing
        begun = rollover.plan(parent, Where(), wish=trigger.text)
    written = rollover.write(begun, Where())
    _keep(parent, trigger, written, [UNFINISHED, _again(parent)])
    if trigger.hooked:
        let_wait(written)  # Esc ends us without a word: then /clear still leads on
    model, limit = _model(deadline - REPLACING)
    outcome = rollover.add_summary(begun, written, model, Where(), limit=limit, progress=lambda _number, _count: None)
    facts = _facts(parent, outcome)
    _keep(parent, trigger, outcome.receipt, facts)
    return _answer(outcome.receipt, facts, trigger)


def _model(deadline: float) -> tuple[ClaudeHeadless, float]:
    """The model of the settings, and the seconds that it has."""
    chosen = settings.load()
    limit = min(settings.number("summary_timeout"), deadline - time.monotonic())
    return ClaudeHeadless(Where(), str(chosen["summary_model"].value)), limit


def _facts(parent: SessionFile, outcome: rollover.SummaryOutcome) -> list[str]:
    """What the child holds, what that took, and the way to what it lacks."""
    spent = [f"it took {outcome.spent.words}"] if outcome.spent.words else []
    if outcome.failure:
        return [rollover.failure_text(outcome.failure), *spent, _again(parent)]
    return [f"a summary by {outcome.spent.model} and a digest are in it", *spent]


def _again(parent: SessionFile) -> str:
    return f"once more, in a shell: {_shell(parent)}"


def _shell(parent: SessionFile) -> str:
    return f"resume-hooks rollover {parent.session_id}"


def _answer(receipt: Receipt, facts: Sequence[str], trigger: Trigger) -> Answer:
    cleared = [CLEARED] if trigger.hooked and let_wait(receipt) else []
    shown = [*(one_line(plain_line(fact), WIDEST) for fact in facts), *cleared]
    done = "rolled over" if receipt.written else "already rolled over"
    return Answer(receipt.in_client, lambda copied: child_card(done, receipt, copied, shown, slash=trigger.slash))


def _keep(parent: SessionFile, trigger: Trigger, child: Receipt, facts: Sequence[str]) -> None:
    """Note what was made of what was asked for; without the note the same is made, and paid for, anew."""
    with contextlib.suppress(OSError):
        hook_state.sweep(_PREFIX)
        hook_state.keep(
            _name(parent), {"child": child.session_id, "asked": trigger.text[: rollover.MAX_WISH], "facts": list(facts)}
        )


def _standing(parent: SessionFile, trigger: Trigger) -> Answer | None:
    """The child that the same words made, where nobody went on in it or asked anything here since."""
    note = hook_state.find(_name(parent))
    if note.get("asked") != trigger.text:
        return None
    receipt = standing_rollover(parent, Where())
    if receipt is None or receipt.session_id != note.get("child"):
        return None
    facts = note.get("facts")
    return _answer(
        receipt, [fact for fact in facts if isinstance(fact, str)] if isinstance(facts, list) else [], trigger
    )


def _name(parent: SessionFile) -> str:
    return f"{_PREFIX}{parent.session_id}.json"
