"""Handle sessions whose transcript is in several project folders.

A client can resume such a session only from these folders. The copy that contains all records of
the other copies is kept. If no copy contains all records, the user must choose a copy by its path.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import SessionFile, all_sessions
from resume_hooks.system.invocation import quote_word
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.transcript import scan_transcript

if TYPE_CHECKING:
    from resume_hooks.maintenance.doctor import Finding


class SessionCopies(NamedTuple):
    """The copies of a session: the copy to keep, and all other copies.

    ``missing_record_count`` is the number of records that are only in the other copies.
    """

    copy_to_keep: SessionFile
    other_copies: tuple[SessionFile, ...]
    missing_record_count: int


def find_duplicate_sessions(where: Where) -> list[list[SessionFile]]:
    """Return the copies of each session that is in several project folders, newest copy first."""
    copies = defaultdict[str, list[SessionFile]](list)
    for session in all_sessions(where):
        copies[session.session_id].append(session)
    folders = []
    for copies_of_session in copies.values():
        if len(copies_of_session) > 1:
            folders.append(copies_of_session)
    return folders


def format_copies_note(session_id: str, where: Where) -> str:
    """Return a note for the user if a session is in several project folders, and otherwise ``""``.

    The note contains the command that removes all copies but one.
    """
    copies = all_sessions(where, session_id)
    if len(copies) < 2:
        return ""
    return (
        f"Copies of its file are in {format_count(len(copies), 'project folder')}, and clients since 2.1.223 can't "
        "resume it from any other folder. To keep one copy and move the others to the trash: "
        f"resume-hooks delete {session_id} --other-copies"
    )


def choose_copy_to_keep(
    given_copy: SessionFile, where: Where, *, is_chosen_by_path: bool
) -> SessionCopies:
    """Choose the copy to keep.

    If ``is_chosen_by_path`` is true, the user has chosen ``given_copy`` by its path. Otherwise
    choose the copy that contains all records. Raise UsageError if the session has only one copy,
    and ResumeHooksError if each copy lacks records of another copy.
    """
    copies = all_sessions(where, given_copy.session_id)
    if len(copies) < 2 or given_copy.path not in {copy.path for copy in copies}:
        raise UsageError(
            f"{given_copy.path} is the only copy of {given_copy.session_id}",
            "There is nothing to decide.",
        )
    records_by_path = {}
    for copy in copies:
        records_by_path[copy.path] = {node.uuid for node in scan_transcript(copy.path).nodes}
    all_ids = set().union(*records_by_path.values())
    missing_counts = {}
    for path, uuids in records_by_path.items():
        missing_counts[path] = len(all_ids - uuids)
    copy_to_keep = (
        given_copy
        if is_chosen_by_path
        else next((copy for copy in copies if not missing_counts[copy.path]), None)
    )
    if copy_to_keep is None:
        missing_text = "; ".join(
            f"{copy.path} lacks {format_count(missing_counts[copy.path], 'record')} of the other copies"
            for copy in copies
        )
        raise ResumeHooksError(
            f"Several copies have records that the other copies lack: {missing_text}",
            "Give the path of the copy to keep. To save the records of another copy first: "
            f"resume-hooks fork {quote_word(copies[-1].path)}",
        )
    other_copies = tuple(copy for copy in copies if copy.path != copy_to_keep.path)
    return SessionCopies(copy_to_keep, other_copies, missing_counts[copy_to_keep.path])


def check_for_duplicate_sessions(_: str) -> Finding:
    """Return doctor's finding about sessions that are in several project folders.

    Newer clients refuse to resume these sessions from other folders.
    """
    # Imported here because only ``doctor`` needs it.
    from resume_hooks.maintenance.doctor import make_ok_finding, make_problem_finding

    duplicate_sessions = find_duplicate_sessions(Where())
    if not duplicate_sessions:
        return make_ok_finding("every session is in one project folder")
    session_id = duplicate_sessions[0][0].session_id
    others_text = (
        f", and {len(duplicate_sessions) - 1:,} more" if len(duplicate_sessions) > 1 else ""
    )
    remedy = f"To keep one copy and move the others to the trash: resume-hooks delete {session_id} --other-copies"
    problem = (
        f"{session_id} is in {len(duplicate_sessions[0])} project folders{others_text}. "
        "Clients since 2.1.223 can resume it only from these folders"
    )
    return make_problem_finding(problem, remedy, "found")
