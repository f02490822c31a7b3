"""Run ``sessions --subagents``: list the sub-agents of a project's sessions, or of all sessions.

The sub-agent that was written to most recently comes first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.cli.options import find_project_folder
from resume_hooks.cli.output import column_table
from resume_hooks.cli.verbs.sessions import SessionsOptions
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.parts.subagents.as_session import read_inline_subagents
from resume_hooks.search import listing
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import NAME_FOR_ALL_AGENTS
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import (
    read_subagent_type,
    subagent_name,
    subagents_by_session,
    subagents_in_folder,
    title_of_transcript,
)
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail

TABLE_HEADINGS = ("SUB-AGENT", "AGE", "SIZE", "KIND", "ASKED")
# A client whose version starts with this prefix stored sub-agents in the session's own file.
CLIENT_VERSION_PREFIX_WITH_INLINE_SUBAGENTS = "1."


class ListedSubagent(NamedTuple):
    """A sub-agent in the list. ``locator`` is the argument that selects it in other commands.

    ``mtime`` is the modification time of its file, in seconds.
    """

    locator: str
    session_id: str
    session_file: str
    kind: str
    task: str
    mtime: float
    size: int


def print_subagents(options: SessionsOptions) -> None:
    """Print a page of the list of sub-agents. Raise UsageError for options that apply only to sessions."""
    for other_option in ("only_archived", "only_expiring", "include_headless_runs"):
        options.refuse_combination("subagents", other_option)
    if options.agent not in {NAME_FOR_ALL_AGENTS, CLAUDE_NAME}:
        raise UsageError(f"Sub-agents of {options.agent} can't be listed", "Leave out --agent.")
    folder = find_project_folder(options.project)
    if options.everywhere:
        project, scope = (None, "all")
    else:
        project, scope = (project_of_folder(folder, options.where), folder)
    sessions = listing.candidate_files(project, options.where)
    files_by_session: dict[str, dict[str, list[str]]] = {}
    subagents: list[ListedSubagent] = []
    for session in sessions:
        with contextlib.suppress(SessionNotFound):  # The session was deleted after it was listed.
            ends, project_folder = HeadTail(session.path), os.path.dirname(session.path)
            if project is None or project.contains_session(ends.folders, ends.project):
                if project_folder not in files_by_session:
                    files_by_session[project_folder] = subagents_by_session(project_folder)
                subagents += _list_subagents(
                    session, ends, files_by_session[project_folder].get(session.session_id, [])
                )
    subagents.sort(key=lambda subagent: subagent.mtime, reverse=True)
    page_end = options.offset + options.limit if options.limit else None
    page = subagents[options.offset : page_end]
    has_more = len(subagents) > options.offset + len(page)
    data = {
        "scope": scope, "offset": options.offset, "more": has_more, "files": len(sessions), "helpers": 0,
        "sessions": [], "archived": [], "subagents": [_make_json_row(subagent) for subagent in page],
    }  # fmt: skip
    if has_more:
        more_text = f"\nMore: --offset {options.offset + len(page)}, or --limit 0 for all."
    else:
        more_text = ""
    options.print_answer(data, lambda: _format_subagents(page) + more_text)


def _make_json_row(subagent: ListedSubagent) -> dict[str, object]:
    """Return a sub-agent as a row in the JSON format of ``sessions --subagents``."""
    return {
        "locator": subagent.locator,
        "session_id": subagent.session_id,
        "session_file": subagent.session_file,
        "kind": subagent.kind,
        "asked": subagent.task,
        "ended": clock.timestamp_from_epoch(subagent.mtime),
        "size": subagent.size,
    }


def _list_subagents(
    session: SessionFile, ends: HeadTail, subagent_names: list[str]
) -> Iterator[ListedSubagent]:
    """Yield the sub-agents that a session has started. Raise SessionNotFound if its file was deleted."""
    subagent_files = subagents_in_folder(os.path.splitext(session.path)[0], session.session_id)
    for path in (*(subagent.path for subagent in subagent_files), *subagent_names):
        if name := subagent_name(path):
            # The transcript of the sub-agent was deleted after it was listed.
            with contextlib.suppress(OSError, SessionNotFound):
                status = os.stat(path)
                yield _build_listed_subagent(
                    session,
                    path,
                    name,
                    read_subagent_type(path),
                    title_of_transcript(path),
                    status.st_mtime,
                    status.st_size,
                )
    for subagent in (
        read_inline_subagents(session.path)
        if ends.version.startswith(CLIENT_VERSION_PREFIX_WITH_INLINE_SUBAGENTS)
        else ()
    ):
        end_time = clock.parse_timestamp(subagent.last_timestamp)
        yield _build_listed_subagent(
            session,
            session.path,
            subagent.name,
            "",
            subagent.task,
            end_time.timestamp() if end_time else 0.0,
            subagent.byte_count,
        )


def _build_listed_subagent(
    session: SessionFile, path: str, name: str, kind: str, task: str, mtime: float, size: int
) -> ListedSubagent:
    locator = f"{session.session_id}/{name}"
    return ListedSubagent(
        locator,
        session.session_id,
        path,
        kind,
        collapse_line(task, MAX_TITLE_CHARACTERS),
        mtime,
        size,
    )


def _format_subagents(subagents: list[ListedSubagent]) -> str:
    if not subagents:
        return "No sub-agent of these sessions has a transcript on this machine. Use --all to search every project."
    now = time.time()
    rows = []
    for subagent in subagents:
        rows.append(
            (
                subagent.locator,
                clock.format_duration(max(0, int(now - subagent.mtime))),
                format_bytes(subagent.size),
                plain_line(subagent.kind),
                plain_line(subagent.task),
            )
        )
    table = column_table(
        TABLE_HEADINGS, rows, len(TABLE_HEADINGS), shutil.get_terminal_size((200, 0)).columns
    )
    return (
        f"{table}\nTo turn a sub-agent into a session: {shell_command('handoff SUB-AGENT')}, or "
        f"{shell_command('fork SUB-AGENT')}"
    )
