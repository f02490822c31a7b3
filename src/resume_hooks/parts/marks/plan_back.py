"""Plan a child that contains the conversation up to a mark and a report of what happened after it.

The records before the mark stay unchanged, so the API's cache of these records remains valid. The
lineage and the report follow them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from resume_hooks import clock
from resume_hooks.clock import format_minute
from resume_hooks.derive import agents
from resume_hooks.derive import fork as forking
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.inherited_metadata import copy_lines_after_chain
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import (
    ClosingTexts,
    ParentScan,
    make_lineage_if_needed,
    plan_chain_rewrite,
    scan_parent,
)
from resume_hooks.derive.child.write_child import ChildPlan, Sizes, Watcher
from resume_hooks.derive.cut_point import CutAtRecord
from resume_hooks.derive.fresh_child import FreshOpening, make_opening_lines, plan_fresh_opening
from resume_hooks.derive.opening_size import resolve_size_to_tokens
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import MarkNotFound, UsageError
from resume_hooks.parts.marks.fork_point import list_remarks_on_newer_parent_turns
from resume_hooks.parts.marks.state import Mark, check_not_subagent, use_up_mark
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.opening import convert_tokens_to_characters, format_opening
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.lineage_block import replace_block_markers
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_layout import REPORT_HEADING
from resume_hooks.sessions.record_references import (
    SHORT_ID_CHARACTERS,
    TranscriptNames,
    names_of_transcript,
)
from resume_hooks.system.text import collapse_line, plain_text, replace_surrogates
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.linearize import find_max_valid_record_count, linearize_chain
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import RewindTimestamps
from resume_hooks.transcripts.records import USER, Record, get_message
from resume_hooks.transcripts.transcript import Transcript

MAX_GOAL_CHARACTERS = 300
"""Maximum number of characters of a goal or a report on a card."""


class OmittedRecords(NamedTuple):
    """The records that the child omits.

    References to these records use the ``transcript_names`` of the session. ``prompt_id`` is the id
    of the first omitted prompt for which the client saved the user's files, or ``""`` if there is
    none.
    """

    transcript_names: TranscriptNames
    first_line_number: int
    last_line_number: int
    prompt_id: str

    @property
    def reference_range_text(self) -> str:
        """The references to the first and the last omitted record, as text."""
        first_reference, last_reference = (
            self.transcript_names.make_reference(self.first_line_number),
            self.transcript_names.make_reference(self.last_line_number),
        )
        if first_reference == last_reference:
            return first_reference
        return f"{first_reference} to {last_reference}"


class OpeningData(NamedTuple):
    """The data for the opening of the child.

    ``missing_mark_reason`` says why the mark cannot be found. It is ``""`` if the mark was found.
    ``report`` and ``fork_digest_text`` may be ``""``.
    """

    mark: Mark
    report: str
    omitted_records: OmittedRecords | None
    missing_mark_reason: str
    fork_digest_text: str


def format_opening_for_model(child: Draft, data: OpeningData) -> str:
    """Return the opening of the child for the model.

    It contains the lineage, the position of the mark, the findings of a fork, and the report.
    """
    mark, omitted_records, missing_mark_reason = (
        data.mark,
        data.omitted_records,
        data.missing_mark_reason,
    )
    mark_time = format_minute(mark.started_at)
    place_text = f"at a mark that the user set, {mark_time}"
    if mark.left_parent_id:
        place_text = (
            f"when the parent session, which is a fork, branched off from {mark.left_parent_id}, {mark_time}; "
            "the fork's findings are below"
        )
    position = f"The conversation above is as it was {place_text}."
    if missing_mark_reason:
        position = (
            f"None of the earlier conversation is loaded: {mark.subject_phrase.lower()} "
            f"({mark_time}) can't be found any more"
        )
        position += f" ({missing_mark_reason})."
    lines = [child.lineage_text, "", position]
    if mark.goal:
        lines.append(
            f"The goal at the mark: {replace_block_markers(collapse_line(mark.goal, MAX_GOAL_CHARACTERS))}"
        )
    if omitted_records is not None:
        if missing_mark_reason:
            mark_location = "It is"
        else:
            mark_location = "The conversation after the mark is not loaded: it is"
        first_reference = omitted_records.transcript_names.make_reference(
            omitted_records.first_line_number
        )
        read_command = f"read {first_reference} --after 20"
        lines.append(
            f"{mark_location} in records {omitted_records.reference_range_text} of the parent session, "
            "which the session-search skill can read "
            f"(`{child.make_command(f'outline {omitted_records.transcript_names.quoted_name}')}`, "
            f"`{child.make_command(read_command)}`)."
        )
    lines.append(
        "Files, git and running processes were not reset: what the later work changed in them stays changed."
    )
    lines += ["", data.fork_digest_text] if data.fork_digest_text else []
    lines += ["", REPORT_HEADING, replace_block_markers(data.report)] if data.report else []
    return replace_surrogates("\n".join(lines))


def format_opening_for_screen(data: OpeningData) -> str:
    """Return the opening of the child for the screen."""
    mark, omitted_records, missing_mark_reason = (
        data.mark,
        data.omitted_records,
        data.missing_mark_reason,
    )
    if mark.goal:
        goal = f": {collapse_line(plain_text(mark.goal), MAX_GOAL_CHARACTERS)}"
    else:
        goal = ""
    first_line = f"**Back** to {format_minute(mark.started_at)}{goal}."
    if mark.left_parent_id:
        short_id = mark.left_parent_id[:SHORT_ID_CHARACTERS]
        first_line = (
            f"**Back** to where the fork branched off from `{short_id}`, "
            f"{format_minute(mark.started_at)}."
        )
    if missing_mark_reason:
        first_line = (
            f"**Back** with only the report: {mark.subject_phrase.lower()}{goal} can no longer be "
            f"found ({missing_mark_reason})."
        )
    if omitted_records:
        last_line = (
            f"{'The conversation' if missing_mark_reason else 'The part after the mark'} can be read on "
            f"demand: records {omitted_records.reference_range_text}."
        )
    else:
        last_line = "There was nothing after the mark."
    return "\n\n".join(
        [
            first_line,
            *(
                [f"**Report:** {collapse_line(plain_text(data.report), MAX_GOAL_CHARACTERS)}"]
                if data.report
                else []
            ),
            *(
                ["This session starts with a digest of the fork's findings."]
                if data.fork_digest_text
                else []
            ),
            f"{last_line} Changes to files, git and processes were not undone.",
        ]
    )


BACK_CHILD_KIND: Final = "back"

MAX_REPORT_CHARACTERS = 500_000
"""Maximum number of characters in a report."""

EMPTY_REPORT_MESSAGE = "The report cannot be empty."


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportPlan(ChildPlan):
    """The plan of a child with the records up to the mark, followed by the report."""

    report: str

    def watchers(self) -> Sequence[Watcher]:
        """Return one watcher, which checks that the child ends with the report."""
        return [_FinalReportWatcher(self.report)]


class BackCommandPlan(NamedTuple):
    """The plan of ``back``.

    ``child`` contains the records up to the mark. If the mark cannot be found, ``child`` is a fresh
    session, and ``missing_mark_reason`` says why.
    """

    child: ChildPlan
    mark: Mark
    report: str
    omitted_records: OmittedRecords | None
    missing_mark_reason: str


def validate_report(report: str) -> str:
    """Return a report without white space at its start and end.

    Raise UsageError if the report is empty or too long.
    """
    report = replace_surrogates(report.strip())
    if not plain_text(report).strip():
        raise UsageError(
            EMPTY_REPORT_MESSAGE,
            "Describe in a few lines what you found out and what the outcome was.",
        )
    if len(report) > MAX_REPORT_CHARACTERS:
        raise UsageError(
            f"The report has {len(report):,} characters, which is more than {MAX_REPORT_CHARACTERS:,}",
            (
                "Your text is not lost: press the up arrow to get it back. Move the long part of the report "
                "into a file, and mention the file's path in the report."
            ),
        )
    return report


def go_back(
    session: SessionFile, mark: Mark, report: str, caller: Caller
) -> tuple[BackCommandPlan, Receipt]:
    """Write a child that contains ``session`` up to ``mark``, and delete the mark.

    If writing fails, the mark is kept. Raise the same errors as ``plan_back``.
    """
    with caller.time_limit():
        plan = plan_back(session, mark, report, caller.where, caller.output_dir)
    with contextlib.ExitStack() as stack:
        if not caller.dry_run:
            stack.enter_context(use_up_mark(mark))
        receipt = caller.write_child(plan.child)
    return plan, receipt


def plan_back(
    session: SessionFile, mark: Mark, report: str, where: Where, output_dir: str | None = None
) -> BackCommandPlan:
    """Plan a child that contains ``session`` up to ``mark``, followed by ``report``.

    A fork needs no report, because its child also gets a digest of what the fork found. If the mark
    cannot be found, the child contains only the report and a warning. Raise MarkInSubagent for a
    sub-agent's transcript, UsageError if the report is empty or too long, and MarkNotFound for a fork
    without a conversation of its own.
    """
    check_not_subagent(session)
    if report.strip() or not mark.left_parent_id:
        report = validate_report(report)
    else:
        report = ""
    parent, kept_nodes, omitted_nodes, missing_mark_reason, remarks = _split_at_mark(session, mark)
    omitted_records = _find_omitted_records(
        parent, omitted_nodes, mark.record + 1 if missing_mark_reason else None, where
    )
    child = agents.draft_child(session, BACK_CHILD_KIND, where, output_dir)
    fork_digest_text = ""
    if mark.left_parent_id:
        if omitted_records is None:
            raise MarkNotFound(
                f"Nothing has been said in this fork since it branched off from its parent {mark.left_parent_id}",
                f"To continue in the parent, run this in Claude Code: /resume {mark.left_parent_id}",
            )
        digest, read_command = (
            build_digest(session, where, first_line=mark.record + 1),
            f"{child.make_command('read')} --after 20",
        )
        digest_reference = f"{session.session_id}:{omitted_records.first_line_number}"
        fork_digest_text = format_opening(
            digest,
            convert_tokens_to_characters(resolve_size_to_tokens("", where)),
            record_ref=digest_reference,
            read_command=read_command,
        ).text
        mark_node = parent.transcript.nodes_by_uuid.get(mark.uuid)
        if mark_node and mark_node.time_ms:
            fork_time = clock.timestamp_from_milliseconds(mark_node.time_ms)
        else:
            fork_time = mark.started_at
        remarks = [*remarks, *list_remarks_on_newer_parent_turns(session, fork_time, where)]
    data = OpeningData(mark, report, omitted_records, missing_mark_reason, fork_digest_text)
    closing = ClosingTexts(format_opening_for_model(child, data), format_opening_for_screen(data))
    tokens_after = parent.count_sent_tokens(list(kept_nodes), where) + round(
        (len(closing.text) + len(closing.screen_text)) / parent.characters_per_token
    )
    sizes = Sizes(parent.context.tokens, tokens_after)
    first_line = child.make_first_line(
        parent.make_child_size(tokens_after),
        rewind_times=RewindTimestamps(mark.started_at, child.attributes.created_at),
    )
    fresh_opening = FreshOpening(child, first_line, *closing, parent.head_tail, sizes)
    if child.agent != CLAUDE_NAME:
        child_plan: ChildPlan = agents.load_foreign_writer(
            child.agent, where
        ).plan_child_with_rewound_records(fresh_opening, [node.uuid for node in kept_nodes])
    elif missing_mark_reason:
        child_plan = plan_fresh_opening(fresh_opening, make_opening_lines(fresh_opening))
    else:
        transcript_part = parent.transcript.with_chain(kept_nodes)
        body = plan_chain_rewrite(
            child,
            transcript_part,
            parent.preparation_observer,
            first_line=first_line,
            lineage=make_lineage_if_needed(child, transcript_part),
            metadata_lines=copy_lines_after_chain(
                transcript_part, parent.preparation_observer, parent.head_tail, child.session_id
            ),
            closing=closing,
            allowed_thinking_hashes=frozenset(parent.child_observer.thinking_hashes),
        )
        child_plan = _ReportPlan(draft=child, body=body, sizes=sizes, report=closing.text)
    child_plan = replace(child_plan, remarks=(*remarks, *child_plan.remarks))
    return BackCommandPlan(child_plan, mark, report, omitted_records, missing_mark_reason)


class _SplitSession(NamedTuple):
    """A session that was split at a mark.

    ``kept_nodes`` are the records up to the mark, and ``omitted_nodes`` those after it. If the mark
    cannot be found, ``missing_mark_reason`` says why, and no records are kept. ``user_remarks`` are
    for the user.
    """

    parent: ParentScan
    kept_nodes: Sequence[Node]
    omitted_nodes: Sequence[Node]
    missing_mark_reason: str
    user_remarks: list[str]


def _split_at_mark(session: SessionFile, mark: Mark) -> _SplitSession:
    if mark.left_parent_id and (conversation_at_mark := _split_conversation_at_mark(session, mark)):
        return conversation_at_mark
    parent = scan_parent(session)
    nodes = linearize_chain(parent.transcript.chain).nodes
    kept_nodes, missing_mark_reason, remarks = _select_nodes_up_to_mark(parent.transcript, mark)
    if missing_mark_reason and not mark.left_parent_id:
        conversation = _split_conversation_at_mark(session, mark)
    else:
        conversation = None
    return conversation or _SplitSession(
        parent,
        kept_nodes,
        nodes[0 if missing_mark_reason else len(kept_nodes) :],
        missing_mark_reason,
        remarks,
    )


def _split_conversation_at_mark(session: SessionFile, mark: Mark) -> _SplitSession | None:
    """Split the conversation in which a mark was set, even if a compaction has removed the mark since.

    Return None if the record of the mark no longer exists.
    """
    if session.agent != CLAUDE_NAME:
        return None
    try:
        parent, cut = forking.scan_and_cut(session, CutAtRecord(mark.uuid))
    except UsageError:
        return None
    if cut is None or not any(node.is_message for node in cut.nodes):
        return None
    later_nodes = []
    for node in parent.transcript.nodes:
        if node.line_number > cut.last_message.line_number and not node.is_sidechain:
            later_nodes.append(node)
    return _SplitSession(parent, cut.nodes, later_nodes, "", list(cut.remarks))


def _select_nodes_up_to_mark(
    transcript: Transcript, mark: Mark
) -> tuple[Sequence[Node], str, list[str]]:
    """Return the records up to the mark, the reason for a failure, and remarks for the user.

    If the mark is found, the reason is ``""``. Otherwise, the list of records is empty, and the
    reason says why the mark cannot be found.
    """
    linear = linearize_chain(transcript.chain)
    node_count = next(
        (node_count for node_count, node in enumerate(linear.nodes, 1) if node.uuid == mark.uuid), 0
    )
    kept_nodes = linear.nodes[: find_max_valid_record_count(linear, node_count)]
    if not any(node.is_message for node in kept_nodes):
        missing_mark_reason = _explain_missing_mark(transcript, mark, node_count)
        return (
            (),
            missing_mark_reason,
            [
                (
                    f"{mark.subject_phrase} can't be found any more ({missing_mark_reason}): the new session "
                    "has only the report."
                )
            ],
        )
    is_moved = any(node.is_message for node in linear.nodes[len(kept_nodes) : node_count])
    return (
        kept_nodes,
        "",
        ["The cut is a little before the mark, so that no tool call is split."] if is_moved else [],
    )


def _explain_missing_mark(transcript: Transcript, mark: Mark, node_count: int) -> str:
    if node_count:
        return "a tool call before the mark has no result"
    chain = transcript.chain
    marked_node = next((node for node in transcript.nodes if node.uuid == mark.uuid), None)
    is_compacted = (
        bool(chain)
        and chain[0].is_boundary
        and (marked_node.line_number if marked_node else mark.record) < chain[0].line_number
    )
    if is_compacted and (marked_node is not None or not transcript.is_whole):
        return "it was compacted away"
    if marked_node is None:
        return "its record is gone"
    return "it is on an abandoned branch"


def _find_omitted_records(
    parent: ParentScan, nodes: Sequence[Node], first_omitted_line: int | None, where: Where
) -> OmittedRecords | None:
    """Return a description of the records that the child omits, or None if they contain no conversation.

    ``first_omitted_line`` is the line number of the first record after the mark, or None if the
    mark was not found. It is given separately because a compaction may have removed this record
    from ``nodes``.
    """
    if not any(node.is_in_conversation for node in nodes):
        return None
    line_numbers = [node.line_number for node in nodes]
    prompts_with_files = set()
    for snapshot in parent.preparation_observer.snapshots:
        prompts_with_files.add(snapshot.message_uuid)
    prompt = next(
        (node.uuid for node in nodes if node.is_prompt and node.uuid in prompts_with_files), ""
    )
    first_line = (
        min(line_numbers) if first_omitted_line is None else min(*line_numbers, first_omitted_line)
    )
    return OmittedRecords(
        names_of_transcript(parent.session, where), first_line, max(line_numbers), prompt
    )


class _FinalReportWatcher:
    """Checks that the user's last record contains the expected text."""

    def __init__(self, text: str) -> None:
        self._expected_text = text
        self._last_text: object = None

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Remember the text of a user's record."""
        if node is not None and node.kind == USER:
            self._last_text = get_message(record).get("content")

    def run_checks(self) -> list[Check]:
        """Return a check that the child ends with the report."""
        return [Check("the report is whole", self._last_text == self._expected_text)]
