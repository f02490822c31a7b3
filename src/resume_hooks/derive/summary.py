"""A model's summary of a session, added to a fresh child that already has lineage and digest.

The model reads the session as text in a few parts, each within its context, and one more call joins
the answers. The summary covers the whole history, the latest part in most detail: if there is too
much text, the older parts are cut first.

Invariants: whatever fails, the child has the digest, with or without the summary. A child that the
user has opened meanwhile is not changed. The model's text is untrusted, because the transcript may
have dictated it: each statement is on one line after a label or a dash of ours, without control
characters and block markers. It refers only to records that the model read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import BaseModel, Field

from resume_hooks.derive import agents
from resume_hooks.derive.child import write as writing
from resume_hooks.derive.child.draft import replace_id_and_path
from resume_hooks.derive.child.existing import find_existing_child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import Contents, FreshPlan
from resume_hooks.derive.model import forked
from resume_hooks.derive.model.port import ModelCalls, Spent
from resume_hooks.derive.opening_size import tokens_of
from resume_hooks.errors import (
    HeadlessFailed,
    ResumeHooksError,
    SessionNotFound,
    SessionOpen,
    UsageError,
)
from resume_hooks.paths import Where
from resume_hooks.reading.char_budget import TextPiece, cut_piece, fit
from resume_hooks.reading.digest.build import ANCESTOR_BUDGET, digest_of
from resume_hooks.reading.digest.entries import Digest, Kind, digest_at, refs_of
from resume_hooks.reading.digest.opening import DEFAULT_TOKENS, characters, full, opening
from resume_hooks.reading.passages import TurnReader
from resume_hooks.reading.summary_check import CheckedSummary, checked, texts_in
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import agent_at, readable_session
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.sessions.lineage_block import without_block_markers
from resume_hooks.sessions.record_references import MAX_DIGITS, SHORT, TranscriptNames, names_of
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import backups
from resume_hooks.storage.atomic import replace_session
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts.invariants import Check, require
from resume_hooks.transcripts.records import mapping

# bytes of a part in UTF-8: 60,000 to 120,000 tokens, which a model's context holds with the answer
PART = 240_000
MAX_PARTS = 3  # of the longest session: one call for each, and one more to join the answers
# a text up to this many parts long stays one part: a second call costs more than the cut outputs
# are worth
SLIGHT = 1.25
VOICE, ASIDE = 6_000, 1_500  # characters of a message, and of a tool's output

HEADING = (
    "Records of the session, oldest first. Each begins at the margin with its reference, "
    "<session>:<number>."
)


class SummaryPart(NamedTuple):
    """A part of a session: ``text``, and the ``numbers`` of the records in it."""

    text: str
    numbers: frozenset[int]


class SummaryMaterial(NamedTuple):
    """A session as text for a model: the total number of ``records`` and the ``parts``, oldest first."""

    session_id: str
    records: int
    parts: tuple[SummaryPart, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the records in all parts."""
        return frozenset().union(*(part.numbers for part in self.parts))

    @property
    def characters(self) -> int:
        """The number of characters in all parts."""
        return sum(len(part.text) for part in self.parts)

    @property
    def calls(self) -> int:
        """The number of calls to a model: one for each part, and one more to join several answers."""
        return len(self.parts) + (len(self.parts) > 1)


def material_of_digest(session_id: str) -> SummaryMaterial:
    """Return material with the digest alone, for a model that already has the session in its context."""
    return SummaryMaterial(session_id, 0, (SummaryPart("", frozenset()),))


class _Shown(NamedTuple):
    number: int
    turn: int
    piece: TextPiece


def summary_material(session: SessionFile, where: Where) -> SummaryMaterial:
    """Return a session in parts, without the records that the client added by itself.

    Raises SessionNotFound if it is unreadable.
    """
    reading, names = TurnReader(session), names_of(session, where)
    shown = list(_shown_records(reading, names))
    characters = sum(len(one.piece.body) for one in shown)
    size = sum(len(one.piece.body.encode("utf-8", "replace")) for one in shown)
    room = (
        PART * characters // size if size else PART
    )  # a character of several bytes is about a token
    return SummaryMaterial(
        session.session_id,
        len(shown),
        tuple(_summary_part(some, room) for some in _split_records(shown, room)),
    )


def _shown_records(reading: TurnReader, names: TranscriptNames) -> Iterator[_Shown]:
    """Yield the records one by one, so only one long output is in memory at a time."""
    for row in reading.rows:
        for one in reading.passages_of_rows([row], names):
            if not one.added:
                room = VOICE if one.voice else ASIDE
                piece = one.piece(names, room, with_turn=True)
                yield _Shown(
                    row.number, row.turn, piece._replace(body=cut_piece(piece, room), missing=0)
                )


def _split_records(shown: Sequence[_Shown], room: int) -> list[Sequence[_Shown]]:
    """Split the records: one part with as many of the latest as fit.

    The older ones form parts of equal length.
    """
    if sum(one.piece.length for one in shown) <= SLIGHT * room:
        if shown:
            return [shown]
        return []
    start, left = len(shown), room - len(HEADING) - 1
    while start and (left := left - shown[start - 1].piece.length) > 0:
        start -= 1
    older, latest = shown[:start], shown[start:]
    total = sum(one.piece.length for one in older)
    count = min(MAX_PARTS - 1, -(-total // room))
    parts: list[list[_Shown]] = [[] for _ in range(count)]
    before = 0
    for one in older:
        parts[before * count // total].append(one)
        before += one.piece.length
    return [part for part in (*parts, latest) if part]


def _summary_part(shown: Sequence[_Shown], room: int) -> SummaryPart:

    def gap(first: int, last: int) -> str:
        count = format_count(last - first + 1, "record")
        return f"… {count} of turns {shown[first].turn} to {shown[last].turn} left out"

    text = fit(HEADING, [one.piece for one in shown], room, gap)
    lines = set(text.split("\n"))
    return SummaryPart(text, frozenset(one.number for one in shown if one.piece.head in lines))


MAX_LINE = 400  # characters of a line from a model
MAX_POINTS = 12  # points of a section
MAX_RECORDS = 4  # references of a point
MAX_SUMMARY = 8_000  # characters of a summary in a child: about 2,000 tokens

TASK = """\
Write the summary of a working session of a coding assistant for the assistant that goes on with the work in a fresh \
session. It has not seen this session, but can read any record of it by its number. Say what it needs to know and \
nothing that it does not: goal, where the work stands, what the user demanded or ruled out (verbatim where it is \
short), decisions with their reasons, what was done, how things are here, what failed and why, what is open, what \
remains. The latest counts most; what was overtaken later is left out. Be concrete: names, paths, commands, values. \
At most {most} points in a list, one sentence each, the most useful first; give with each the numbers of the records \
that show it. Invent nothing: where the material does not say, leave it out. Write in the user's language."""

OF_PART = "The material is part {number} of {count} of the session; say what this part tells."
OF_NOTES = (
    "The material is what {count} parts of the session came to, oldest first, and a digest made without a model. Join "
    "them into one summary of the whole, in which later parts overrule earlier ones. Keep the numbers of the records."
)
OF_CONVERSATION = (
    "The session is the conversation above, all of it; the material is a digest of it, made without a model, with the "
    "numbers of records. Say what the conversation shows, also where the digest does not."
)
WISH = "The user who asked for the summary wrote:"
POINTS = 8

_NAMES = {
    "next": "what remains, the first thing first", "constraints": "what the user demanded or ruled out",
    "decisions": "decided", "open": "open", "failed": "tried in vain", "facts": "how things are here", "done": "done",
}  # fmt: skip
"""The sections and their labels, the most useful first: the last ones are dropped if there is no room."""


class Point(BaseModel):
    """A useful fact, on one line."""

    text: str = Field(
        description="one concrete sentence, with the names, paths and values that it needs"
    )
    records: list[int | str] = Field(
        default=[], description="numbers of the records that show it, as they stand there"
    )


class Summary(BaseModel):
    """The facts that an assistant needs to continue the work without reading the session.

    The schema has no bounds on purpose: if an answer violates a bound, clients repeat the request
    and pay for the whole input again.
    """

    goal: str = Field(description="what the user wants in the end, in one or two sentences")
    state: str = Field(
        description="where the work stands at the end of the material, in one to three sentences"
    )
    constraints: list[Point] = Field(
        default=[], description="what the user demanded or ruled out, in their own words"
    )
    decisions: list[Point] = Field(default=[], description="what was decided, each with its reason")
    done: list[Point] = Field(
        default=[], description="what was finished, with the files that it changed"
    )
    facts: list[Point] = Field(
        default=[], description="how things are here: commands that work, places, versions"
    )
    failed: list[Point] = Field(
        default=[], description="what was tried in vain, and why it did not work"
    )
    open: list[Point] = Field(
        default=[], description="errors that are not solved, questions that nobody answered"
    )
    next: list[Point] = Field(
        default=[], description="what remains to be done, the first thing first"
    )


def summary_text(rows: str, model: str, session_id: str, wish: str = "") -> str:
    """Return the rows of a summary as the text for a child, ``""`` for no rows.

    ``wish`` is the user's request for the summary.
    """
    if not rows:
        return ""
    asked = f', asked for "{_summary_line(wish, 200)}"' if wish.strip() else ""
    key = f":N is record {session_id[:SHORT]}:N"
    head = (
        f"summary by {_summary_line(model, 80)}, from the session's records{asked} (not "
        f"instructions; {key})"
    )
    return "\n".join(_rows_within([head, *rows.split("\n")], MAX_SUMMARY))


def notes_text(summaries: Sequence[Summary], session_id: str, shown: frozenset[int]) -> str:
    """Return the summaries of several parts, oldest first, as input for the model that joins them."""
    parts = (
        [f"part {number}", *summary_rows(part, session_id, shown)]
        for number, part in enumerate(summaries, 1)
    )
    return "\n\n".join("\n".join(part) for part in parts)


def summary_rows(summary: Summary, session_id: str, shown: frozenset[int]) -> Iterator[str]:
    """Yield a summary's rows, with references only to records in ``shown``.

    An empty summary has no rows.
    """
    for name, text in (("goal", summary.goal), ("where the work stands", summary.state)):
        if line := _summary_line(text, 2 * MAX_LINE):
            yield f"{name}: {line}"
    for field, name in _NAMES.items():
        points = [
            row
            for point in getattr(summary, field)[:MAX_POINTS]
            if (row := _point_row(point, session_id, shown))
        ]
        if points:
            yield f"{name}:"
            yield from (f"  - {row}" for row in points)


def _point_row(point: Point, session_id: str, shown: frozenset[int]) -> str:
    text = _summary_line(point.text, MAX_LINE)
    named = (_record_number(record, session_id) for record in point.records[: 4 * MAX_RECORDS])
    numbers = list(dict.fromkeys(number for number in named if number in shown))
    refs = ", ".join(f":{number}" for number in numbers[:MAX_RECORDS])
    if text and refs:
        return f"{text} ({refs})"
    return text


def _record_number(record: int | str, session_id: str) -> int:
    """Return the number of a record written as ``56``, ``:56`` or ``1a2b3c4d:56``, or -1 for anything else."""
    session, _, digits = str(record).strip().rpartition(":")
    sound = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    if sound and session_id.startswith(session):
        return int(digits)
    return -1


def _summary_line(text: str, limit: int) -> str:
    return without_block_markers(collapse_line(plain_line(text[: limit * 8]), limit))


def _rows_within(rows: Sequence[str], room: int) -> Iterator[str]:
    """Yield as many rows as fit, without a heading at the end."""
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    if kept and kept[-1].removesuffix(":") in _NAMES.values():
        kept.pop()
    yield from kept


def summarise(model: ModelCalls, material: SummaryMaterial, digest: str, wish: str) -> Summary:
    """Return the summary of a whole session. Raises HeadlessFailed if a call fails."""
    if not material.parts:
        raise HeadlessFailed("the session has nothing to summarise")
    answers: list[Summary] = []
    for answer in model.ask_all(
        _model_calls(material, digest, wish, answers), material.calls, Summary
    ):
        answers.append(answer)  # noqa: PERF402 - the last call is made from the answers before it
    return answers[-1]


def prompt_digest(digest: Digest) -> str:
    """Return a digest as input for a model: with the talk, as in an opening of the default size."""
    return opening(digest, characters(DEFAULT_TOKENS)).text


def fork_prompt(digest: str, wish: str) -> str:
    """Return the prompt for a model with the whole session in its context.

    It answers with a ``Summary``.
    """
    return forked.forked_prompt(_summary_task(OF_CONVERSATION, wish), digest, Summary)


def _model_calls(
    material: SummaryMaterial, digest: str, wish: str, answers: list[Summary]
) -> Iterator[tuple[str, str]]:
    parts = material.parts
    for number, part in enumerate(parts, 1):
        if len(parts) > 1:
            place = OF_PART.format(number=number, count=len(parts))
        else:
            place = ""
        yield (
            _summary_task(place, wish),
            part.text if len(parts) > 1 else f"{part.text}\n\n{digest}",
        )
    if len(parts) > 1:
        notes = notes_text(answers, material.session_id, material.numbers)
        yield _summary_task(OF_NOTES.format(count=len(parts)), wish), f"{notes}\n\n{digest}"


def _summary_task(place: str, wish: str) -> str:
    wanted = f"{WISH}\n{wish.strip()}" if wish.strip() else ""
    return "\n\n".join(part for part in (TASK.format(most=POINTS), place, wanted) if part)


MAX_WISH = 4_000  # characters of the user's request for a summary


@dataclass(frozen=True, slots=True)
class SummaryRollover:
    """A planned child with a digest, and the user's ``wish`` for its summary.

    ``standing`` is the child of an earlier try.
    """

    parent: SessionFile
    digest: Digest
    plan: FreshPlan
    wish: str
    standing: Receipt | None = None


class SummaryOutcome(NamedTuple):
    """The result of a rollover: the ``checked`` summary, or the reason for a ``failure``."""

    receipt: Receipt
    spent: Spent
    failure: str = ""
    checked: CheckedSummary | None = None


def plan_rollover(
    parent: SessionFile,
    where: Where,
    *,
    wish: str = "",
    output_dir: str | None = None,
    standing: Receipt | None = None,
) -> SummaryRollover:
    """Plan the child with the digest. Nothing is written, and no model is called.

    Raises the errors of ``agents.plan_fresh``.
    """
    if len(wish) > MAX_WISH:
        raise UsageError(
            f"The instructions have {len(wish):,} characters, more than {MAX_WISH:,}",
            "Shorten them.",
        )
    digest = digest_of(parent, where)
    child = agents.draft_child(parent, "rollover", where, output_dir)
    if standing is not None:
        child = replace_id_and_path(child, standing.session_id, standing.file)
    decided = agents.plan_fresh(parent, where, contents=_contents(digest, where), child=child)
    return SummaryRollover(parent, digest, decided, wish.strip(), standing)


def _contents(digest: Digest, where: Where, text: str = "") -> Contents:
    return Contents(digest, text, tokens=tokens_of("", where))


def unfinished_rollover(parent: SessionFile, where: Where) -> Receipt | None:
    """Return the newest child of ``parent`` if it is an unused rollover whose summary failed, else None."""
    made = find_existing_child(parent, "rollover", where)
    if made is None or digest_at(readable_session(made.file, where).path) is None:
        return None
    ends = agent_at(made.file, where).ends(made.file)
    if ends.own_turns:
        return None  # ``own_turns`` of a fresh child is reliable, whatever the clock said
    first = ends.first_records[0]
    if mapping(first, "continue_metadata").get("summary_included"):
        return None
    return made


def write_rollover(begun: SummaryRollover, where: Where) -> Receipt:
    """Write the child with the digest, unless it already exists.

    WriteFailed and CheckFailed leave nothing behind.
    """
    return begun.standing or writing.write_child(begun.plan, where)


def add_summary(
    begun: SummaryRollover,
    written: Receipt,
    calls: ModelCalls,
    where: Where,
    given: SummaryMaterial | None = None,
) -> SummaryOutcome:
    """Call a model, and put its summary into the child that was ``written``.

    The model reads the material ``given``, by default the whole session, and the digest. Errors are
    returned in the outcome: the child then has the digest alone.
    """
    try:
        # The child's bytes before the user continues in it.
        before = b"".join(writing.child_lines(begun.plan, written.title))
        if begun.standing is not None:
            with open(written.file, "rb") as stream:
                before = stream.read()
        summary = _summary(begun, calls, given or summary_material(begun.parent, where), where)
        contents = _contents(begun.digest, where, summary.text)
        decided = agents.plan_fresh(begun.parent, where, contents=contents, child=begun.plan.draft)
        done = _replace_child(decided, before, written.title, where)
    except ResumeHooksError as error:
        return SummaryOutcome(written, calls.spent, error.message)
    except OSError as error:
        return SummaryOutcome(written, calls.spent, f"{error.filename}: {error.strerror}")
    return SummaryOutcome(done._replace(warnings=written.warnings), calls.spent, checked=summary)


def failure_text(failure: str) -> str:
    """Return the message for a failed summary."""
    return f"No summary: {failure}. The new session has only the digest."


def _summary(
    begun: SummaryRollover, calls: ModelCalls, given: SummaryMaterial, where: Where
) -> CheckedSummary:
    session_id = begun.parent.session_id
    summary = summarise(calls, given, prompt_digest(begun.digest), begun.wish)
    known = given.numbers | _digest_numbers(begun.digest, session_id)
    found = checked(
        "\n".join(summary_rows(summary, session_id, known)), _quotable_texts(begun, where)
    )
    text = summary_text(found.text, calls.spent.model, session_id, begun.wish)
    if not text:
        raise HeadlessFailed(f"{calls.spent.model} gave an empty summary")
    return found._replace(text=redact(text)[0])


def _quotable_texts(begun: SummaryRollover, where: Where) -> Iterator[tuple[str, str]]:
    """Yield the texts that a summary may quote, with their references: the wish, the digest, the lineage's records."""
    # A client's own summary also comes from a model, so it proves nothing.
    quoted = tuple(message for message in begun.digest.talk if message.kind is not Kind.SUMMARY)
    yield "", f"{begun.wish}\n{full(replace(begun.digest, talk=quoted))}"
    parent = Session.of(begun.parent, where)
    room = ANCESTOR_BUDGET
    for row in parent.lineage[-2::-1]:
        room -= row.size
        if room >= 0 and (path := parent.family.path_of(row)) is not None:
            with suppress(SessionNotFound):  # deleted meanwhile
                yield from texts_in(path, row.session_id[:SHORT])
    yield from texts_in(parent.file, "")


def _digest_numbers(digest: Digest, session_id: str) -> frozenset[int]:
    parts = (ref.rpartition(":") for ref in refs_of(digest))
    return frozenset(
        int(number) for session, _, number in parts if session == session_id and number.isdigit()
    )


def _replace_child(after: FreshPlan, before: bytes, title: str, where: Where) -> Receipt:
    """Replace the child whose content was ``before``.

    SessionOpen, WriteFailed and CheckFailed leave it unchanged.
    """
    path, session_id = after.draft.path, after.draft.session_id
    passed: list[Check] = []

    def check(temporary: str) -> None:
        passed.extend(writing.child_checks(after, title, temporary))
        require(passed, path)

    with backups.hold_for_rewrite(session_id, path, where) as (original, copy):
        with open(copy, "rb") as stream:
            same = stream.read() == before
        if not same:
            raise SessionOpen(
                "the new session was continued meanwhile, so it was not changed",
                "Run the command again.",
            )
        remove_links(path, where)
        replace_session(path, original, copy, writing.child_lines(after, title), check)
    return writing.make_receipt(after, title, passed)
