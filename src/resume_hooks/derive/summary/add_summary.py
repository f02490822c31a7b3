"""Add a model's summary to a fresh child that was written with lineage and digest.

Invariant: whatever happens to the model or to us, the child stands with the digest, or with digest and summary; a child
that somebody opened meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive import fresh_child
from resume_hooks.derive.child import write as child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import Written
from resume_hooks.derive.fresh_child import Contents, RolloverPlan
from resume_hooks.derive.model.port import Model, ModelCalls, Progress, Spent
from resume_hooks.derive.summary.ask import summarise
from resume_hooks.derive.summary.form import summary_text
from resume_hooks.derive.summary.parts import material
from resume_hooks.errors import HeadlessFailed, ResumeHooksError, SessionLive, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.storage import backups
from resume_hooks.storage.atomic import replace_session
from resume_hooks.transcripts.invariants import Check, require

MAX_WISH = 4_000  # characters of what a summary is asked for


@dataclass(frozen=True, slots=True)
class SummaryRollover:
    """A child with lineage and digest, planned; ``wish`` is what the user asks of its summary."""

    parent: SessionFile
    digest: Digest
    plan: RolloverPlan
    wish: str


class SummaryOutcome(NamedTuple):
    """The result of a rollover; ``failure`` says why there is no summary, ``""`` if there is one."""

    receipt: Receipt
    spent: Spent
    failure: str = ""


def plan(parent: SessionFile, where: Where, *, wish: str = "", output_dir: str | None = None) -> SummaryRollover:
    """Decide on the child with the digest; nothing is touched, no model asked. As ``fresh_child.plan`` raises."""
    if len(wish) > MAX_WISH:
        raise UsageError(
            f"The instructions have {len(wish):,} characters, more than {MAX_WISH:,}", "Say it in fewer words."
        )
    digest = digest_of(parent, where)
    decided = fresh_child.plan(parent, where, output_dir=output_dir, contents=Contents(digest))
    return SummaryRollover(parent, digest, decided, wish.strip())


def write(begun: SummaryRollover, where: Where) -> Receipt:
    """Make the child with the digest. WriteFailed or CheckFailed leave nothing behind."""
    return child.write(begun.plan, where)


def add_summary(
    begun: SummaryRollover,
    written: Receipt,
    model: Model,
    where: Where,
    *,
    limit: float,
    progress: Progress,
) -> SummaryOutcome:
    """Ask a model, within ``limit`` seconds, and put its summary into the child that was ``written``.

    Never raises for what fails there: then the child with the digest stands.
    """
    calls = ModelCalls(model, limit, progress)
    try:
        summary = _summary(begun, calls, where)
        contents = Contents(begun.digest, summary)
        decided = fresh_child.plan(begun.parent, where, contents=contents, child=begun.plan.draft)
        done = _replace(begun.plan, decided, written.title, where)
    except ResumeHooksError as error:
        return SummaryOutcome(written, calls.spent, error.message)
    except OSError as error:
        return SummaryOutcome(written, calls.spent, f"{error.filename}: {error.strerror}")
    return SummaryOutcome(done._replace(warnings=written.warnings), calls.spent)


def failure_text(failure: str) -> str:
    """What the user is told of a summary that failed."""
    return f"No summary: {failure}. The new session has only the digest."


def _summary(begun: SummaryRollover, calls: ModelCalls, where: Where) -> str:
    """The text of a summary. HeadlessFailed if there is none."""
    given = material(begun.parent, where)
    summary = summarise(calls, given, as_text.full(begun.digest), begun.wish)
    known = given.numbers | _numbers(begun.digest, begun.parent.session_id)
    text = summary_text(summary, calls.spent.model, begun.parent.session_id, known, begun.wish)
    if not text:
        raise HeadlessFailed(f"{calls.spent.model} said nothing")
    return redact(text)[0]


def _numbers(digest: Digest, session_id: str) -> frozenset[int]:
    """The records of a session that its digest names."""
    refs = (entry.ref.rpartition(":") for entries in digest.sections.values() for entry in entries)
    return frozenset(int(number) for session, _, number in refs if session == session_id and number.isdigit())


def _replace(before: RolloverPlan, after: RolloverPlan, title: str, where: Where) -> Receipt:
    """Put one child in the place of the other, which is the same, with the same title, but for its contents.

    SessionLive if the child is not as it was written; WriteFailed and CheckFailed leave it as it is.
    """
    path, session_id = after.draft.path, after.draft.session_id
    passed: list[Check] = []

    def check(temporary: str) -> None:
        passed.extend(child.all_checks(after, title, temporary))
        require(passed, path)

    with backups.held(session_id, path, where) as (original, copy):
        try:
            _require_untouched(child.all_lines(before, title), copy)
            replace_session(path, original, copy, child.all_lines(after, title), check)
        finally:
            backups.drop(copy)
    return child.receipt(after, Written(title, tuple(passed)))


def _require_untouched(lines: Iterable[bytes], copy: str) -> None:
    with open(copy, "rb") as stream:
        same = stream.read() == b"".join(lines)
    if not same:
        raise SessionLive(
            "somebody went on in the new session meanwhile, so it was left as it is", "Run the command again."
        )
