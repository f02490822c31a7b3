"""Read a session once and check it for all groups of defects.

The modules in this package check Claude Code's format. For a session of another agent, the part for
that agent finds the defects (``questions.agent_defects``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resume_hooks import questions
from resume_hooks.errors import ResumeHooksError
from resume_hooks.maintenance.fsck import damaged_bytes, links, messages
from resume_hooks.maintenance.fsck.findings import Defect, DefectKind, DefectReport, group_findings
from resume_hooks.maintenance.fsck.links import LeafHint
from resume_hooks.maintenance.fsck.sidecars import (
    ReferencedFiles,
    TrimmedRecords,
    defects_of_missing_originals,
    defects_of_referenced_files,
)
from resume_hooks.paths import Where, session_id_from_path
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_session, row_of_agent
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.metadata_records import LAST_PROMPT, SNAPSHOT_KINDS
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.transcript import RecordObserver, Transcript, scan_transcript

UNREADABLE_SESSION_DEFECT = DefectKind(
    "session-unreadable", "error", "No client can resume the session.", is_repairable=False
)


class DefectCollector:
    """An observer for ``transcript.scan_transcript`` that collects defects.

    ``defects_of_any_record`` are reported for every record. ``defects_of_live_records`` are
    reported only for records of the live conversation.
    """

    def __init__(self) -> None:
        self.defects_of_any_record: list[Defect] = []
        self.defects_of_live_records: list[Defect] = []
        self.hints: list[LeafHint] = []
        self.referenced_files = ReferencedFiles()
        self.trimmed_records = TrimmedRecords()
        self.thinking_check = messages.ThinkingCheck()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Check one record."""
        self.defects_of_any_record += damaged_bytes.defects_of_line(line, node)
        self.trimmed_records.add_record(record, line.number)
        if node is None:
            kind = records.get_kind(record)
            if kind == LAST_PROMPT and get_string(record, "leafUuid"):
                self.hints.append(LeafHint(line.number, get_string(record, "leafUuid")))
            elif kind in SNAPSHOT_KINDS:
                self.referenced_files.add_backups(record, line.number)
            return
        self.defects_of_live_records += damaged_bytes.defects_of_surrogates(line, node)
        if node.kind == records.ASSISTANT:
            self.defects_of_live_records += self.thinking_check.check_thinking(record, node)
        if node.is_message:
            self.defects_of_any_record += messages.defects_of_broken_message(record, node)
            self.defects_of_live_records += messages.defects_of_content(record, node)
        if node.is_boundary:
            self.hints.clear()  # After a compaction, the client ignores earlier hints.
        if node.answered_call_ids and b"<persisted-output>" in line.raw:
            self.referenced_files.add_outputs(record, line.number)


def examine_session(session: SessionFile, where: Where) -> DefectReport:
    """Return all defects of a session of any agent.

    A file that can't be read is reported as a defect and does not raise an error.
    """
    agent = agent_of_session(session, where)
    path = session.path if agent.name == CLAUDE_NAME else session.original_path
    try:
        if agent.name == CLAUDE_NAME:
            return diagnose_session(session, where)[1]
        agent_row = row_of_agent(agent.name)
        if not agent_row.defect_finder_entry_point:
            return group_findings(session.session_id, path, ())
        find_defects = questions.agent_defects.load_function(
            agent_row.part, agent_row.defect_finder_entry_point
        )
        defects = find_defects(path, agent.find_file_by_id)
        return group_findings(session.session_id, path, defects)
    except ResumeHooksError as error:
        return group_findings(
            session.session_id, path, [Defect(UNREADABLE_SESSION_DEFECT, error.message)]
        )


def diagnose_session(
    session: SessionFile, where: Where, observers: Sequence[RecordObserver] = ()
) -> tuple[Transcript, DefectReport]:
    """Return a session's transcript and its defects. Raise SessionNotFound or NotATranscript."""
    collector = DefectCollector()
    transcript = scan_transcript(session.path, observers=(collector, *observers))
    defects = _defects_of_transcript(transcript, collector, session.session_id, where)
    return transcript, group_findings(session.session_id, session.path, defects)


def _defects_of_transcript(
    transcript: Transcript, collector: DefectCollector, session_id: str, where: Where
) -> Iterator[Defect]:
    live_numbers = {node.line_number for node in transcript.chain}
    yield from collector.defects_of_any_record
    yield from damaged_bytes.defects_of_bad_lines(transcript)
    for defect in collector.defects_of_live_records:
        if defect.record_number in live_numbers:
            yield defect
    yield from messages.defects_of_lone_thinking(
        transcript.chain, collector.thinking_check.thinking_only_lines
    )
    yield from messages.defects_of_calls(transcript.chain)
    yield from links.defects_of_links(transcript)
    yield from links.defects_of_branches(transcript, collector.hints)
    yield from links.defects_of_compactions(transcript)
    yield from messages.defects_of_sequence(transcript, session_id_from_path(transcript.path))
    yield from defects_of_referenced_files(collector.referenced_files, session_id, where)
    yield from defects_of_missing_originals(collector.trimmed_records, transcript.path, where)
