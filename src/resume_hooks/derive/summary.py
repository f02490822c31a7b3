"""Ask a model for a summary of a session, and add it to a child with a lineage and a digest.

The session is converted to text and split into a few parts, each of which fits the model's context.
The model summarizes each part, and one more call joins the summaries. If there is too much text,
older parts are shortened more than the latest part.

Invariants: if the summary fails, the child still has the digest. A child that the user has opened
since it was written is not changed.

The model's text is not trusted, because the transcript may have dictated it. Each of its statements
becomes one line, after a label or a dash that this module writes. Control characters and block
markers are removed. References to records that the model has not read are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import BaseModel, Field

from resume_hooks.derive import agents
from resume_hooks.derive.child import write_child as writing
from resume_hooks.derive.child.draft import replace_id_and_path
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import ChildContents, FreshChildPlan
from resume_hooks.derive.model import forked
from resume_hooks.derive.model.port import CallCosts, ModelCalls
from resume_hooks.derive.opening_size import resolve_size_to_tokens
from resume_hooks.errors import (
    HeadlessFailed,
    ResumeHooksError,
    SessionInUse,
    SessionNotFound,
    UsageError,
)
from resume_hooks.paths import Where
from resume_hooks.reading.char_budget import TextPiece, cut_piece, fit_pieces
from resume_hooks.reading.digest.build import MAX_ANCESTOR_BYTES, build_digest
from resume_hooks.reading.digest.entries import (
    Digest,
    MessageKind,
    iterate_digest_references,
    read_digest,
)
from resume_hooks.reading.digest.opening import (
    DEFAULT_OPENING_TOKENS,
    convert_tokens_to_characters,
    format_opening,
    format_whole_digest,
)
from resume_hooks.reading.passages import TurnReader
from resume_hooks.reading.summary_check import CheckedSummary, check_summary, read_record_texts
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.agents.registry import agent_of_path, readable_session
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.sessions.lineage_block import replace_block_markers
from resume_hooks.sessions.record_references import (
    MAX_LINE_NUMBER_DIGITS,
    SHORT_ID_CHARACTERS,
    TranscriptNames,
    names_of_transcript,
)
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import backups
from resume_hooks.storage.atomic import replace_session
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts.invariants import Check, require_all_checks
from resume_hooks.transcripts.records import get_mapping

# A part has at most this number of bytes in UTF-8. This is 60,000 to 120,000 tokens, which fit into
# a model's context together with the answer.
MAX_SUMMARY_PART_BYTES = 240_000
# A session is split into at most this number of parts. Each part needs one call, and joining the
# answers needs one more.
MAX_SUMMARY_PARTS = 3
# A text is not split if it is at most this many times as long as a part. It is shortened instead,
# because the lost text is worth less than another call would cost.
MAX_SINGLE_PART_LENGTH_RATIO = 1.25
# Messages and tool outputs with more characters than these are cut.
MAX_MESSAGE_CHARACTERS, MAX_OUTPUT_CHARACTERS = 6_000, 1_500

SUMMARY_MATERIAL_HEADING = (
    "Records of the session, oldest first. Each begins at the margin with its reference, "
    "<session>:<number>."
)


class SummaryPart(NamedTuple):
    """A part of a session as text.

    ``record_numbers`` are the line numbers of the records in the text.
    """

    text: str
    record_numbers: frozenset[int]


class SummaryMaterial(NamedTuple):
    """A session as text for a model.

    ``record_count`` is the number of records in the text. ``parts`` are in order, the oldest first.
    """

    session_id: str
    record_count: int
    parts: tuple[SummaryPart, ...]

    @property
    def record_numbers(self) -> frozenset[int]:
        """The line numbers of the records in all parts."""
        return frozenset().union(*(part.record_numbers for part in self.parts))

    @property
    def character_count(self) -> int:
        """The number of characters in all parts."""
        return sum(len(part.text) for part in self.parts)

    @property
    def call_count(self) -> int:
        """The number of calls to a model: one for each part, and one to join the answers of several parts."""
        return len(self.parts) + (len(self.parts) > 1)


def make_material_without_records(session_id: str) -> SummaryMaterial:
    """Return a ``SummaryMaterial`` without records, for a model that has the session in its context.

    In addition to its context, this model needs only the digest.
    """
    return SummaryMaterial(session_id, 0, (SummaryPart("", frozenset()),))


class _RecordText(NamedTuple):
    line_number: int
    turn_number: int
    piece: TextPiece


def read_summary_material(session: SessionFile, where: Where) -> SummaryMaterial:
    """Return the session as text for a model, split into parts.

    Records that the client itself added are omitted. Raises SessionNotFound if the session is
    unreadable.
    """
    reader, names = TurnReader(session), names_of_transcript(session, where)
    shown_records = list(_read_shown_records(reader, names))
    characters = sum(len(record.piece.body) for record in shown_records)
    size = sum(len(record.piece.body.encode("utf-8", "replace")) for record in shown_records)
    # The size of a part is limited in bytes, because each multi-byte character needs about one token.
    max_characters = MAX_SUMMARY_PART_BYTES * characters // size if size else MAX_SUMMARY_PART_BYTES
    return SummaryMaterial(
        session.session_id,
        len(shown_records),
        tuple(
            _make_part(records, max_characters)
            for records in _split_records(shown_records, max_characters)
        ),
    )


def _read_shown_records(reader: TurnReader, names: TranscriptNames) -> Iterator[_RecordText]:
    """Yield the records as shortened text. At most one complete tool output is in memory at a time."""
    for row in reader.rows:
        for passage in reader.read_passages_of_rows([row], names):
            if not passage.is_client_addition:
                max_characters = (
                    MAX_MESSAGE_CHARACTERS if passage.is_spoken else MAX_OUTPUT_CHARACTERS
                )
                piece = passage.make_text_piece(names, max_characters, with_turn=True)
                yield _RecordText(
                    row.line_number,
                    row.turn_number,
                    piece._replace(body=cut_piece(piece, max_characters), cut_character_count=0),
                )


def _split_records(
    records: Sequence[_RecordText], max_characters: int
) -> list[Sequence[_RecordText]]:
    """Split the records into parts.

    The last part contains as many of the latest records as fit. The records before it are split
    into parts of about equal length.
    """
    if (
        sum(record.piece.character_count for record in records)
        <= MAX_SINGLE_PART_LENGTH_RATIO * max_characters
    ):
        if records:
            return [records]
        return []
    start, remaining_characters = len(records), max_characters - len(SUMMARY_MATERIAL_HEADING) - 1
    while (
        start
        and (
            remaining_characters := remaining_characters - records[start - 1].piece.character_count
        )
        > 0
    ):
        start -= 1
    older_records, latest_records = records[:start], records[start:]
    total = sum(record.piece.character_count for record in older_records)
    count = min(MAX_SUMMARY_PARTS - 1, -(-total // max_characters))
    parts: list[list[_RecordText]] = [[] for _ in range(count)]
    length_before = 0
    for record in older_records:
        parts[length_before * count // total].append(record)
        length_before += record.piece.character_count
    return [part for part in (*parts, latest_records) if part]


def _make_part(records: Sequence[_RecordText], max_characters: int) -> SummaryPart:

    def format_omitted_range(first_index: int, last_index: int) -> str:
        count = format_count(last_index - first_index + 1, "record")
        return f"… {count} of turns {records[first_index].turn_number} to {records[last_index].turn_number} left out"

    text = fit_pieces(
        SUMMARY_MATERIAL_HEADING,
        [record.piece for record in records],
        max_characters,
        format_omitted_range,
    )
    lines = set(text.split("\n"))
    return SummaryPart(
        text, frozenset(record.line_number for record in records if record.piece.heading in lines)
    )


# Maximum number of characters of a line from a model. Longer lines are cut.
MAX_LINE_CHARACTERS = 400
MAX_SECTION_POINTS = 12  # Maximum number of points in a section of a summary.
MAX_REFERENCES_PER_POINT = 4  # Maximum number of references in a point.
# Maximum number of characters of the summary in a child. This is about 2,000 tokens.
MAX_SUMMARY_CHARACTERS = 8_000

SUMMARY_TASK = """\
Write the summary of a working session of a coding assistant for the assistant that continues the work in a fresh \
session. It has not seen this session, but can read any record of it by its number. Include only what it needs to \
know: goal, where the work stands, what the user demanded or ruled out (verbatim where it is \
short), decisions with their reasons, what was done, how things are here, what failed and why, what is open, what \
remains. The latest counts most; leave out what was superseded later. Be concrete: names, paths, commands, values. \
At most {most} points in a list, one sentence each, the most useful first; give with each the numbers of the records \
that show it. Invent nothing: where the material does not say, leave it out. Write in the user's language."""

SUMMARY_PART_INTRODUCTION = (
    "The material is part {number} of {count} of the session; summarize this part."
)
PARTIAL_SUMMARIES_INTRODUCTION = (
    "The material is the summaries of {count} parts of the session, oldest first, and a digest made without a model. "
    "Join them into one summary of the whole, in which later parts override earlier ones. Keep the "
    "numbers of the records."
)
CONVERSATION_INTRODUCTION = (
    "The session is the whole conversation above. The material is a digest of it, made without a model, with the "
    "numbers of records. Summarize the conversation, including what the digest lacks."
)
FOCUS_INTRODUCTION = "The user who asked for the summary wrote:"
MAX_POINTS_IN_PROMPT = 8

_SUMMARY_SECTION_LABELS = {
    "next": "what remains, the next task first", "constraints": "what the user demanded or ruled out",
    "decisions": "decided", "open": "open", "failed": "tried in vain", "facts": "how things are here", "done": "done",
}  # fmt: skip
"""The sections of a summary with their labels. The most useful sections come first.

If there is not enough space, the last sections are omitted.
"""


class Point(BaseModel):
    """A one-line statement in a summary that tells the next assistant something it needs to know."""

    text: str = Field(
        description="one concrete sentence, with the names, paths and values that it needs"
    )
    records: list[int | str] = Field(
        default=[], description="numbers of the records that show it, as in the material"
    )


class Summary(BaseModel):
    """The form of a model's summary, with everything that an assistant needs to continue the work.

    The schema does not limit the length of lists and texts. If an answer exceeded a limit, clients
    would repeat the request, and the user would pay for the whole input again.
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
        default=[], description="what was tried without success, and why it failed"
    )
    open: list[Point] = Field(
        default=[], description="errors that are not solved, questions that nobody answered"
    )
    next: list[Point] = Field(
        default=[], description="what remains to be done, the next task first"
    )


def format_summary(summary_text: str, model: str, session_id: str, focus: str = "") -> str:
    """Return a summary in the form that a child contains, or ``""`` if ``summary_text`` is empty.

    ``focus`` is the user's request for the summary.
    """
    if not summary_text:
        return ""
    focus_note = f', asked for "{_clean_line(focus, 200)}"' if focus.strip() else ""
    reference_note = f":N is record {session_id[:SHORT_ID_CHARACTERS]}:N"
    head = (
        f"summary by {_clean_line(model, 80)}, from the session's records{focus_note} (not "
        f"instructions; {reference_note})"
    )
    rows = [head, *summary_text.split("\n")]
    return "\n".join(_select_fitting_rows(rows, MAX_SUMMARY_CHARACTERS))


def format_partial_summaries(
    summaries: Sequence[Summary], session_id: str, shown_records: frozenset[int]
) -> str:
    """Return the partial summaries, oldest first, as the text from which a model makes one summary."""
    parts = (
        [f"part {number}", *format_summary_rows(part, session_id, shown_records)]
        for number, part in enumerate(summaries, 1)
    )
    return "\n\n".join("\n".join(part) for part in parts)


def format_summary_rows(
    summary: Summary, session_id: str, shown_records: frozenset[int]
) -> Iterator[str]:
    """Yield the rows of a summary. Only references to ``shown_records`` are kept.

    An empty summary has no rows.
    """
    for name, text in (("goal", summary.goal), ("where the work stands", summary.state)):
        if line := _clean_line(text, 2 * MAX_LINE_CHARACTERS):
            yield f"{name}: {line}"
    for field, name in _SUMMARY_SECTION_LABELS.items():
        points = [
            row
            for point in getattr(summary, field)[:MAX_SECTION_POINTS]
            if (row := _format_point(point, session_id, shown_records))
        ]
        if points:
            yield f"{name}:"
            yield from (f"  - {row}" for row in points)


def _format_point(point: Point, session_id: str, shown_records: frozenset[int]) -> str:
    text = _clean_line(point.text, MAX_LINE_CHARACTERS)
    named_numbers = (
        _parse_record_number(record, session_id)
        for record in point.records[: 4 * MAX_REFERENCES_PER_POINT]
    )
    numbers = list(dict.fromkeys(number for number in named_numbers if number in shown_records))
    references = ", ".join(f":{number}" for number in numbers[:MAX_REFERENCES_PER_POINT])
    if text and references:
        return f"{text} ({references})"
    return text


def _parse_record_number(record: int | str, session_id: str) -> int:
    """Return the line number in a reference, or -1 if ``record`` is not a reference.

    The forms of references are ``56``, ``:56`` and ``1a2b3c4d:56``.
    """
    session, _, digits = str(record).strip().rpartition(":")
    is_valid = digits.isascii() and digits.isdigit() and len(digits) <= MAX_LINE_NUMBER_DIGITS
    if is_valid and session_id.startswith(session):
        return int(digits)
    return -1


def _clean_line(text: str, max_characters: int) -> str:
    return replace_block_markers(
        collapse_line(plain_line(text[: max_characters * 8]), max_characters)
    )


def _select_fitting_rows(rows: Sequence[str], max_characters: int) -> Iterator[str]:
    """Yield as many rows as fit into ``max_characters``. If the last of them is a heading, omit it."""
    kept_rows: list[str] = []
    for row in rows:
        max_characters -= len(row) + 1
        if max_characters < 0:
            break
        kept_rows.append(row)
    if kept_rows and kept_rows[-1].removesuffix(":") in _SUMMARY_SECTION_LABELS.values():
        kept_rows.pop()
    yield from kept_rows


def ask_for_summary(
    model: ModelCalls, material: SummaryMaterial, digest: str, focus: str
) -> Summary:
    """Return a model's summary of a whole session. Raises HeadlessFailed if a call fails."""
    if not material.parts:
        raise HeadlessFailed("the session has nothing to summarize")
    answers: list[Summary] = []
    for answer in model.ask_all(
        _prepare_prompts(material, digest, focus, answers), material.call_count, Summary
    ):
        answers.append(answer)  # noqa: PERF402 - the last call is made from the answers before it
    return answers[-1]


def format_digest_for_prompt(digest: Digest) -> str:
    """Return the text of a digest for a model. It is at most as long as an opening of the default size."""
    return format_opening(digest, convert_tokens_to_characters(DEFAULT_OPENING_TOKENS)).text


def make_prompt_after_conversation(digest: str, focus: str) -> str:
    """Return the prompt for a model that has the whole session in its context already.

    The prompt requests an answer in the form of ``Summary``.
    """
    return forked.make_prompt_for_session_model(
        _format_instructions(CONVERSATION_INTRODUCTION, focus), digest, Summary
    )


def _prepare_prompts(
    material: SummaryMaterial, digest: str, focus: str, answers: list[Summary]
) -> Iterator[tuple[str, str]]:
    parts = material.parts
    for number, part in enumerate(parts, 1):
        if len(parts) > 1:
            position_text = SUMMARY_PART_INTRODUCTION.format(number=number, count=len(parts))
        else:
            position_text = ""
        yield (
            _format_instructions(position_text, focus),
            part.text if len(parts) > 1 else f"{part.text}\n\n{digest}",
        )
    if len(parts) > 1:
        notes = format_partial_summaries(answers, material.session_id, material.record_numbers)
        yield (
            _format_instructions(PARTIAL_SUMMARIES_INTRODUCTION.format(count=len(parts)), focus),
            f"{notes}\n\n{digest}",
        )


def _format_instructions(part_introduction: str, focus: str) -> str:
    focus_text = f"{FOCUS_INTRODUCTION}\n{focus.strip()}" if focus.strip() else ""
    return "\n\n".join(
        part
        for part in (SUMMARY_TASK.format(most=MAX_POINTS_IN_PROMPT), part_introduction, focus_text)
        if part
    )


MAX_FOCUS_CHARACTERS = 4_000  # Maximum number of characters in the user's request for a summary.


@dataclass(frozen=True, slots=True)
class SummaryRollover:
    """The plan of a rollover: a child with a digest, to which a summary is added later.

    ``focus`` is the user's request for the summary. ``existing_child`` is the child of an earlier
    attempt, or None.
    """

    parent: SessionFile
    digest: Digest
    plan: FreshChildPlan
    focus: str
    existing_child: Receipt | None = None


class SummaryResult(NamedTuple):
    """The outcome of a request for a summary.

    ``checked_summary`` is the summary that was added. If it is None, ``failure_reason`` says why.
    """

    receipt: Receipt
    costs: CallCosts
    failure_reason: str = ""
    checked_summary: CheckedSummary | None = None


def plan_rollover(
    parent: SessionFile,
    where: Where,
    *,
    focus: str = "",
    output_dir: str | None = None,
    existing_child: Receipt | None = None,
) -> SummaryRollover:
    """Plan a child with a digest. No files are written, and no model is called.

    Raises the errors of ``agents.plan_fresh_child``.
    """
    if len(focus) > MAX_FOCUS_CHARACTERS:
        raise UsageError(
            f"The instructions have {len(focus):,} characters, more than {MAX_FOCUS_CHARACTERS:,}",
            "Shorten them.",
        )
    digest = build_digest(parent, where)
    child = agents.draft_child(parent, "rollover", where, output_dir)
    if existing_child is not None:
        child = replace_id_and_path(child, existing_child.session_id, existing_child.file)
    plan = agents.plan_fresh_child(
        parent, where, contents=_make_child_contents(digest, where), child=child
    )
    return SummaryRollover(parent, digest, plan, focus.strip(), existing_child)


def _make_child_contents(digest: Digest, where: Where, summary: str = "") -> ChildContents:
    return ChildContents(digest, summary, opening_tokens=resolve_size_to_tokens("", where))


def find_unfinished_rollover(parent: Session, where: Where) -> Receipt | None:
    """Return the newest child of ``parent`` if it is an unused rollover without a summary, else None."""
    child = find_existing_child(parent, "rollover", where)
    if child is None or read_digest(readable_session(child.file, where).path) is None:
        return None
    head_tail = agent_of_path(child.file, where).read_ends(child.file)
    if head_tail.has_own_turns:
        return None  # This check does not depend on times, so it works even if the computer's clock was wrong.
    first_record = head_tail.first_records[0]
    if get_mapping(first_record, "continue_metadata").get("summary_included"):
        return None
    return child


def write_rollover(rollover: SummaryRollover, where: Where) -> Receipt:
    """Write the child with the digest, unless it already exists, and return its receipt.

    If WriteFailed or CheckFailed is raised, no files of the child remain.
    """
    return rollover.existing_child or writing.write_child(rollover.plan, where)


def add_summary(
    rollover: SummaryRollover,
    receipt_before: Receipt,
    calls: ModelCalls,
    where: Where,
    material: SummaryMaterial | None = None,
) -> SummaryResult:
    """Ask a model for a summary, and add the summary to the child of ``receipt_before``.

    The model reads the digest and ``material``, which is the whole session by default. If an error
    occurs, the error is part of the outcome, and the child keeps only the digest.
    """
    try:
        # The child is still unused if it consists of these bytes.
        old_bytes = b"".join(writing.list_child_lines(rollover.plan, receipt_before.title))
        if rollover.existing_child is not None:
            with open(receipt_before.file, "rb") as stream:
                old_bytes = stream.read()
        summary = _ask_for_checked_summary(
            rollover, calls, material or read_summary_material(rollover.parent, where), where
        )
        contents = _make_child_contents(rollover.digest, where, summary.text)
        plan = agents.plan_fresh_child(
            rollover.parent, where, contents=contents, child=rollover.plan.draft
        )
        receipt = _replace_unused_child(plan, old_bytes, receipt_before.title, where)
    except ResumeHooksError as error:
        return SummaryResult(receipt_before, calls.spent, error.message)
    except OSError as error:
        return SummaryResult(receipt_before, calls.spent, f"{error.filename}: {error.strerror}")
    return SummaryResult(
        receipt._replace(warnings=receipt_before.warnings), calls.spent, checked_summary=summary
    )


def describe_summary_failure(failure: str) -> str:
    """Return the message that tells the user that the summary failed."""
    return f"No summary: {failure}. The new session has only the digest."


def _ask_for_checked_summary(
    rollover: SummaryRollover, calls: ModelCalls, material: SummaryMaterial, where: Where
) -> CheckedSummary:
    session_id = rollover.parent.session_id
    summary = ask_for_summary(
        calls, material, format_digest_for_prompt(rollover.digest), rollover.focus
    )
    known_numbers = material.record_numbers | _list_record_numbers_in_digest(
        rollover.digest, session_id
    )
    checked_summary = check_summary(
        "\n".join(format_summary_rows(summary, session_id, known_numbers)),
        _iterate_quotable_texts(rollover, where),
    )
    text = format_summary(checked_summary.text, calls.spent.model, session_id, rollover.focus)
    if not text:
        raise HeadlessFailed(f"{calls.spent.model} gave an empty summary")
    return checked_summary._replace(text=redact(text)[0])


def _iterate_quotable_texts(rollover: SummaryRollover, where: Where) -> Iterator[tuple[str, str]]:
    """Yield the texts that a summary may quote, each with its reference.

    The first text is the user's request followed by the digest. The others are the records of the
    parent and its ancestors.
    """
    # A summary by the client is not evidence, because a model wrote it too.
    quotable_messages = tuple(
        message for message in rollover.digest.talk if message.kind is not MessageKind.SUMMARY
    )
    yield (
        "",
        f"{rollover.focus}\n{format_whole_digest(replace(rollover.digest, talk=quotable_messages))}",
    )
    parent = Session.from_file(rollover.parent, where)
    remaining_bytes = MAX_ANCESTOR_BYTES
    for ancestor in parent.lineage[-2::-1]:
        remaining_bytes -= ancestor.size
        if (
            remaining_bytes >= 0
            and (path := parent.lineage_finder.find_transcript(ancestor)) is not None
        ):
            with suppress(SessionNotFound):  # The session was deleted in the meantime.
                yield from read_record_texts(path, ancestor.session_id[:SHORT_ID_CHARACTERS])
    yield from read_record_texts(parent.file, "")


def _list_record_numbers_in_digest(digest: Digest, session_id: str) -> frozenset[int]:
    parts = (ref.rpartition(":") for ref in iterate_digest_references(digest))
    return frozenset(
        int(number) for session, _, number in parts if session == session_id and number.isdigit()
    )


def _replace_unused_child(
    plan: FreshChildPlan, old_bytes: bytes, title: str, where: Where
) -> Receipt:
    """Replace the lines of a child, unless the child no longer consists of ``old_bytes``.

    If SessionInUse, WriteFailed or CheckFailed is raised, the child is unchanged.
    """
    path, session_id = plan.draft.path, plan.draft.session_id
    passed_checks: list[Check] = []

    def require_valid_file(temporary_path: str) -> None:
        passed_checks.extend(writing.check_child_file(plan, title, temporary_path))
        require_all_checks(passed_checks, path)

    with backups.open_and_copy_for_rewrite(session_id, path, where) as (original, copy):
        with open(copy, "rb") as stream:
            is_unchanged = stream.read() == old_bytes
        if not is_unchanged:
            raise SessionInUse(
                "the new session has been continued since, so it was left unchanged",
                "Run the command again.",
            )
        remove_links(path, where)
        replace_session(
            path, original, copy, writing.list_child_lines(plan, title), require_valid_file
        )
    return writing.make_receipt(plan, title, passed_checks)
