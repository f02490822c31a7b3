"""Add a model's summary to a fresh child that was written with lineage and digest.

Invariant: whatever happens to the model or to us, the child stands with the digest, or with digest and summary; a child
that somebody opened meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child import write as writing
from resume_hooks.derive.child.draft import renamed
from resume_hooks.derive.child.existing import existing_child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import Written
from resume_hooks.derive.fresh_child import Contents, RolloverPlan
from resume_hooks.derive.model.port import ModelCalls, Spent
from resume_hooks.derive.summary.ask import rows_of, summarise, summary_text
from resume_hooks.derive.summary.parts import SummaryMaterial, material
from resume_hooks.errors import HeadlessFailed, ResumeHooksError, SessionNotFound, SessionOpen, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import ANCESTOR_BUDGET, digest_of
from resume_hooks.reading.digest.entries import Digest, digest_at
from resume_hooks.reading.summary_check import CheckedSummary, checked, texts_in
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import agent_at, readable
from resume_hooks.sessions.held_links import release
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import backups
from resume_hooks.storage.atomic import replace_session
from resume_hooks.transcripts.invariants import Check, require
from resume_hooks.transcripts.records import mapping

MAX_WISH = 4_000  # characters of what a summary is asked for


@dataclass(frozen=True, slots=True)
class SummaryRollover:
    """A planned child with a digest, and the user's ``wish`` for its summary; an earlier try's is ``standing``."""

    parent: SessionFile
    digest: Digest
    plan: RolloverPlan
    wish: str
    standing: Receipt | None = None


class SummaryOutcome(NamedTuple):
    """The result of a rollover: the summary as it was ``checked``, or, in ``failure``, why there is none."""

    receipt: Receipt
    spent: Spent
    failure: str = ""
    checked: CheckedSummary | None = None


def plan(
    parent: SessionFile,
    where: Where,
    *,
    wish: str = "",
    output_dir: str | None = None,
    standing: Receipt | None = None,
) -> SummaryRollover:
    """Decide on the child with the digest; nothing is touched, no model asked. As ``agents.fresh`` raises."""
    if len(wish) > MAX_WISH:
        raise UsageError(
            f"The instructions have {len(wish):,} characters, more than {MAX_WISH:,}", "Say it in fewer words."
        )
    digest = digest_of(parent, where)
    child = agents.draft_of(parent, "rollover", where, output_dir)
    if standing is not None:
        child = renamed(child, standing.session_id, standing.file)
    decided = agents.fresh(parent, where, contents=Contents(digest), child=child)
    return SummaryRollover(parent, digest, decided, wish.strip(), standing)


def unfinished(parent: SessionFile, where: Where) -> Receipt | None:
    """The newest child of ``parent``, if it is a rollover whose summary failed and nobody went on in either since."""
    made = existing_child(parent, "rollover", where)
    if made is None or digest_at(readable(made.file, where).path) is None:
        return None
    first = agent_at(made.file, where).ends(made.file).first_records[0]
    return None if mapping(first, "continue_metadata").get("summary_included") else made


def write(begun: SummaryRollover, where: Where) -> Receipt:
    """Make the child with the digest, unless it stands. WriteFailed or CheckFailed leave nothing behind."""
    return begun.standing or writing.write(begun.plan, where)


def add_summary(
    begun: SummaryRollover, written: Receipt, calls: ModelCalls, where: Where, given: SummaryMaterial | None = None
) -> SummaryOutcome:
    """Ask a model by ``calls``, and put its summary into the child that was ``written``.

    It reads what is ``given`` beside the digest, by default the session. Never raises for what fails there: then the
    child with the digest stands.
    """
    try:
        before = _as_written(begun, written)
        summary = _summary(begun, calls, given or material(begun.parent, where), where)
        contents = Contents(begun.digest, summary.text)
        decided = agents.fresh(begun.parent, where, contents=contents, child=begun.plan.draft)
        done = _replace(decided, before, written.title, where)
    except ResumeHooksError as error:
        return SummaryOutcome(written, calls.spent, error.message)
    except OSError as error:
        return SummaryOutcome(written, calls.spent, f"{error.filename}: {error.strerror}")
    return SummaryOutcome(done._replace(warnings=written.warnings), calls.spent, checked=summary)


def failure_text(failure: str) -> str:
    """What the user is told of a summary that failed."""
    return f"No summary: {failure}. The new session has only the digest."


def _summary(begun: SummaryRollover, calls: ModelCalls, given: SummaryMaterial, where: Where) -> CheckedSummary:
    session_id = begun.parent.session_id
    summary = summarise(calls, given, as_text.full(begun.digest), begun.wish)
    known = given.numbers | _numbers(begun.digest, session_id)
    found = checked("\n".join(rows_of(summary, session_id, known)), _said(begun, where))
    text = summary_text(found.text, calls.spent.model, session_id, begun.wish)
    if not text:
        raise HeadlessFailed(f"{calls.spent.model} said nothing")
    return found._replace(text=redact(text)[0])


def _said(begun: SummaryRollover, where: Where) -> Iterator[tuple[str, str]]:
    """What a summary may tell of, each text with its reference, if it has one: wish, digest, the lineage's records."""
    yield "", f"{begun.wish}\n{as_text.full(begun.digest)}"
    family = Family(where)
    room = ANCESTOR_BUDGET
    for row in family.lineage(begun.parent.path)[-2::-1]:
        room -= row.size
        if room >= 0 and (path := family.path_of(row)) is not None:
            with suppress(SessionNotFound):  # gone since
                yield from texts_in(path, row.session_id[:SHORT])
    yield from texts_in(begun.parent.path, "")


def _numbers(digest: Digest, session_id: str) -> frozenset[int]:
    refs = (entry.ref.rpartition(":") for entries in digest.sections.values() for entry in entries)
    return frozenset(int(number) for session, _, number in refs if session == session_id and number.isdigit())


def _as_written(begun: SummaryRollover, written: Receipt) -> bytes:
    """The bytes of the child that the summary is for, before anybody goes on in it."""
    if begun.standing is None:
        return b"".join(writing.all_lines(begun.plan, written.title))
    with open(written.file, "rb") as stream:
        return stream.read()


def _replace(after: RolloverPlan, before: bytes, title: str, where: Where) -> Receipt:
    """Put a child in the place of the one that held ``before``. SessionOpen, WriteFailed, CheckFailed leave that."""
    path, session_id = after.draft.path, after.draft.session_id
    passed: list[Check] = []

    def check(temporary: str) -> None:
        passed.extend(writing.all_checks(after, title, temporary))
        require(passed, path)

    with backups.held(session_id, path, where) as (original, copy):
        with open(copy, "rb") as stream:
            same = stream.read() == before
        if not same:
            raise SessionOpen(
                "somebody went on in the new session meanwhile, so it was left as it is", "Run the command again."
            )
        release(path, where)
        replace_session(path, original, copy, writing.all_lines(after, title), check)
    return writing.receipt(after, Written(title, tuple(passed)))
