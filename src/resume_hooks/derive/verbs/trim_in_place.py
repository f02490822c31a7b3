"""``trim --in-place``: trim a session's own file, and keep the originals in a backup.

Every line keeps its number. Lines that are not trimmed keep their bytes, even if they belong to
abandoned branches, contain metadata or are unreadable. The plan is made from the backup. No other
program changes the backup, so exactly the planned contents are replaced.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import Edit
from resume_hooks.derive.child.write_child import make_planned_receipt
from resume_hooks.derive.outcome import NothingWritten, OpenedSession
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import (
    SessionScan,
    TrimPlan,
    list_remarks,
    plan_trim,
    scan_session,
)
from resume_hooks.derive.trim.selection import RecordOrigins, make_trim_edits
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.trim import TrimOutcome
from resume_hooks.errors import SessionInUse, UsageError, WriteFailed
from resume_hooks.paths import Where, is_session_file
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.sessions.open_sessions import describe_open_session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import backups
from resume_hooks.storage.atomic import BUFFER_BYTES, replace_session
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check, check_same_structure
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import parse_record
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.trimmable_pieces import THINKING_PIECE, PieceCollector

CLIENT_KEEPS_CONVERSATION_NOTE = (
    "If a client has this session open, it keeps the old conversation until you type "
    "/resume {id} in it"
)
CLIENT_SHOWS_OLD_SIZE_NOTE = (
    "The token counts in the file are unchanged: clients show the old size until the next answer."
)
COMPACTION_NOTE = "Clients up to version 2.1.112 use these outdated counts and may compact this session immediately."
FILE_STILL_OPEN_NOTE = (
    "A program still has the old file open. End that program, because its new output does not "
    "reach the session."
)
MAY_BE_OPEN_NOTE = "The session may be open ({why}), so trimming it will need --force."


def trim_in_place(
    session: SessionFile, options: Options, caller: Caller, *, force: bool = False
) -> TrimOutcome:
    """Trim a session's own file, and keep the lines that other programs append during the trim.

    The receipt names the session itself, and its ``backup`` is the file with the originals. Raises
    UsageError, OnlyArchived or WriteFailed if the session cannot be trimmed. Raises SessionInUse if
    another process is trimming the session, or if the session is open and ``force`` is false. For
    an open session, a dry run adds a warning instead. After WriteFailed and CheckFailed, the file
    is unchanged.
    """
    where = caller.where
    _require_main_transcript(session, where)
    if caller.dry_run:
        plan = plan_trim(scan_session(session), where, options)
        notes = _list_notes(plan)
        if why := describe_open_session(session, where):
            notes.insert(0, MAY_BE_OPEN_NOTE.format(why=why))
        return NothingWritten(_make_receipt(plan, notes), plan)
    if not force and (why := describe_open_session(session, where)):
        raise SessionInUse(
            f"The session may be open: {why}",
            "Quit the session's client and wait a minute, or add --force. The client's later records are kept.",
        )
    with backups.open_and_copy_for_rewrite(
        session.session_id, session.path, where, keep_copy=True
    ) as (
        original,
        backup,
    ):
        scanned = scan_session(session._replace(path=backup), reads_whole_file=True)
        plan = plan_trim(replace(scanned, session=session), where, options)
        if not plan.is_worthwhile:
            return NothingWritten(_make_receipt(plan, []), plan)
        origins = scanned.find_origins(where)
        edits = make_trim_edits(plan.choices, origins)
        passed_checks: list[Check] = []

        def require_valid_file(path: str) -> None:
            passed_checks.extend(_check_trimmed_file(scanned, edits, origins, path))
            invariants.require_all_checks(passed_checks, session.path)

        remove_links(session.path, where)
        still_open = replace_session(
            session.path, original, backup, _edit_lines(backup, edits), require_valid_file
        )
    notes = _list_notes(plan)
    if still_open:
        notes.insert(0, FILE_STILL_OPEN_NOTE)
    receipt = _make_receipt(plan, notes)._replace(
        written=True, checks=tuple(passed_checks), backup=backup
    )
    return OpenedSession(receipt, plan, "trimmed in place", tuple(list_remarks(plan)))


def _require_main_transcript(session: SessionFile, where: Where) -> None:
    require_client_file(session, where)
    if not is_session_file(session.path):
        raise UsageError(
            f"{session.path} is not the main transcript of a session",
            (
                "Only <session id>.jsonl can be trimmed in place. To write a trimmed child "
                "instead, leave out --in-place."
            ),
        )
    # A deleted file raises no error here. The error is raised later, when the file is read.
    with contextlib.suppress(OSError):
        if not os.stat(session.path).st_mode & stat.S_IWUSR:
            raise WriteFailed(
                f"{session.path} is read-only, so it is not rewritten",
                (
                    f"chmod u+w {shlex.quote(session.path)}; or leave out --in-place to write a "
                    "trimmed child."
                ),
            )


def _edit_lines(backup_path: str, edits: Mapping[int, Edit]) -> Iterator[bytes]:
    with open(backup_path, "rb", buffering=BUFFER_BYTES) as stream:
        for line in read_lines(stream):
            line_edit = edits.get(line.number)
            yield line.raw if line_edit is None else _edit_line(line, line_edit)


def _edit_line(line: Line, edit: Edit) -> bytes:
    before, body, after = line.raw.partition(line.body)
    record = parse_record(body)
    edited = edit(record) if record is not None else None
    if edited is None:
        return line.raw
    return before + encode_record(edited) + after


def _check_trimmed_file(
    scanned: SessionScan, edits: Mapping[int, Edit], origins: RecordOrigins, path: str
) -> list[Check]:
    pieces = PieceCollector()
    new_transcript, old_transcript = scan_transcript(path, observers=[pieces]), scanned.transcript
    return [
        *check_same_structure(old_transcript, new_transcript),
        Check(
            "lines that were not trimmed are unchanged",
            _are_unedited_lines_equal(old_transcript.path, path, edits),
        ),
        Check(
            "thinking is unchanged or removed",
            _count_thinking_blocks_by_hash(pieces)
            <= _count_thinking_blocks_by_hash(scanned.piece_collector),
        ),
        Check(
            "every trimmed record names its original",
            all(
                pieces.origins.get(number) == origins.find_origin_of_record(number)
                for number in edits
            ),
        ),
        Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
    ]


def _are_unedited_lines_equal(old_path: str, new_path: str, edits: Mapping[int, Edit]) -> bool:
    with (
        open(old_path, "rb", buffering=BUFFER_BYTES) as before,
        open(new_path, "rb", buffering=BUFFER_BYTES) as after,
    ):
        return all(
            line == other or number in edits
            for number, (line, other) in enumerate(zip_longest(before, after))
        )


def _count_thinking_blocks_by_hash(pieces: PieceCollector) -> Counter[int]:
    return Counter(piece.content_hash for piece in pieces.pieces if piece.kind == THINKING_PIECE)


def _list_notes(plan: TrimPlan) -> list[str]:
    if not plan.is_worthwhile:
        return []
    parent = plan.draft.parent
    notes = [
        CLIENT_KEEPS_CONVERSATION_NOTE.format(id=parent.session_id),
        CLIENT_SHOWS_OLD_SIZE_NOTE,
    ]
    if plan.context_before.compacts_at_once:
        return [*notes, COMPACTION_NOTE]
    return notes


def _make_receipt(plan: TrimPlan, notes: Sequence[str]) -> Receipt:
    """Return the receipt of a trim in place that is planned but not written."""
    receipt, parent = make_planned_receipt(plan), plan.draft.parent
    if not plan.is_worthwhile:
        return receipt._replace(warnings=tuple(notes))
    return receipt._replace(
        session_id=parent.session_id,
        file=parent.path,
        title=HeadTail(parent.path).title,
        warnings=tuple(notes),
    )
