"""List the transcripts of sessions and of their sub-agents.

Current clients write the transcripts of sub-agents to the session's own folder. Clients before 2.1
wrote them next to the session's file. Symbolic links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    all_project_folders,
    is_session_id,
    read_json_object,
)
from resume_hooks.system.text import collapse_line, replace_surrogates
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.turns import opens_turn

SUBAGENT_PREFIX = "agent-"  # the prefix of the names of sub-agents' files
SUBAGENTS_FOLDER = "subagents"
# The largest integer that the index can store. In nanoseconds, file times exceed it from the year
# 2262 on.
_MAX_INTEGER = 2**63 - 1
# Maximum depth of subfolders in which sub-agents are searched for in a session's folder. Workflows
# store their sub-agents in subfolders.
MAX_FOLDER_DEPTH = 4
MAX_FIRST_LINE_BYTES = 1024 * 1024

# Matches the tags around a message from a team's lead to a member.
_TEAM_MESSAGE_TAG_PATTERN = re.compile(r"</?teammate-message\b[^>]*>")


class Subagent(NamedTuple):
    """A sub-agent's transcript.

    ``session_id`` is the id of the session that started the sub-agent, and ``name`` has the form
    ``agent-<id>``.
    """

    session_id: str
    name: str
    path: str


def subagent_name(path: str) -> str | None:
    """Return ``agent-<id>`` for the path of a sub-agent's transcript, or None for any other path."""
    stem, extension = os.path.splitext(os.path.basename(path))
    if extension == ".jsonl" and stem.startswith(SUBAGENT_PREFIX):
        return stem
    return None


def subagents_of_session(session_file: str) -> list[Subagent]:
    """Return the sub-agents of a session, sorted by name. Folders that can't be read are skipped."""
    folder, name = os.path.split(session_file)
    session_id = os.path.splitext(name)[0]
    own_subagents = subagents_in_folder(os.path.join(folder, session_id), session_id)
    sibling_paths = (
        path
        for path in _subagent_files_in_folder(folder)
        if read_owning_session_id(path) == session_id
    )
    subagents = [
        *own_subagents,
        *(Subagent(session_id, subagent_name(path) or "", path) for path in sibling_paths),
    ]
    return sorted(subagents, key=lambda subagent: subagent.name)


def subagents_in_folder(own_folder: str, session_id: str) -> Iterator[Subagent]:
    """Yield the sub-agents in a session's own folder, in no particular order."""
    top = os.path.join(own_folder, SUBAGENTS_FOLDER)
    if os.path.islink(own_folder) or os.path.islink(top):
        pending_folders = []
    else:
        pending_folders = [(top, MAX_FOLDER_DEPTH)]
    while pending_folders:
        folder, depth = pending_folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending_folders += [(entry.path, depth - 1)] if depth else []
                    elif (name := subagent_name(entry.name)) and entry.is_file(
                        follow_symlinks=False
                    ):
                        yield Subagent(session_id, name, entry.path)
        except OSError:
            continue  # The folder is missing, or was deleted after it was listed.


def read_owning_session_id(path: str) -> str:
    """Return the id of the session that started a sub-agent, from the first record of its transcript.

    Return ``""`` if the record contains no valid id.
    """
    try:
        with open(path, "rb") as stream:
            first_record = records.parse_record(
                Line(0, 0, stream.readline(MAX_FIRST_LINE_BYTES)).body
            )
    except OSError:
        return ""
    session_id = records.get_string(first_record or {}, "sessionId")
    if is_session_id(session_id):
        return session_id
    return ""


def file_of_owning_session(path: str, session_id: str) -> str:
    """Return the path of the transcript of the session that started a sub-agent.

    If ``path`` is not a sub-agent's transcript, return ``path``.
    """
    if subagent_name(path) is None:
        return path
    folder, separator, _ = path.partition(os.path.join(os.sep, session_id, SUBAGENTS_FOLDER, ""))
    return os.path.join(
        folder if separator else os.path.dirname(path), f"{session_id}{TRANSCRIPT_SUFFIX}"
    )


def read_subagent_type(path: str) -> str:
    """Return a sub-agent's type from the .meta.json file next to its transcript, or ``""``."""
    meta = read_json_object(os.path.splitext(path)[0] + ".meta.json")
    return records.get_string(meta, "agentType")


def title_of_transcript(path: str) -> str:
    """Return the title of a transcript.

    The title of a sub-agent's transcript is its first prompt. If a team's lead sent this prompt,
    the tags around it are removed.
    """
    ends = HeadTail(path)
    if subagent_name(path) is None:
        return ends.title
    prompts = (record for record in ends.first_records if opens_turn(record, is_subagent=True))
    words = next(map(records.prompt_text, prompts), "")
    return (
        collapse_line(_TEAM_MESSAGE_TAG_PATTERN.sub("", words), MAX_TITLE_CHARACTERS) or ends.title
    )


def subagents_by_session(folder: str) -> dict[str, list[str]]:
    """Map each session id to the paths of its sub-agents' files, which lie next to the session's file.

    In each list, a sub-agent's .meta.json file directly follows its transcript.
    """
    files_by_session: dict[str, list[str]] = {}
    for path in sorted(_subagent_files_in_folder(folder)):
        meta_path = f"{path.removesuffix('.jsonl')}.meta.json"
        files_by_session.setdefault(read_owning_session_id(path), []).extend(
            [path, meta_path] if os.path.lexists(meta_path) else [path]
        )
    return files_by_session


def _subagent_files_in_folder(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            files = (entry for entry in entries if entry.is_file(follow_symlinks=False))
            for entry in files:
                if subagent_name(entry.name):
                    yield entry.path
    except OSError:
        return


class TranscriptFile(NamedTuple):
    """A transcript on disk.

    ``agent_name`` is ``agent-<id>`` for a sub-agent's transcript, else ``""``. ``session_id`` is the id
    of the session. It is ``""`` for a sub-agent's transcript that is next to the session's file,
    because the path of such a transcript does not contain the session's id. ``size`` is in
    bytes.
    """

    path: str
    folder: str
    session_id: str
    agent_name: str
    inode: int
    size: int
    mtime_ns: int


def list_transcripts(where: Where) -> list[TranscriptFile]:
    """Return every transcript in the config home.

    Files whose paths are not valid UTF-8 are left out, because SQLite can't store their paths.
    """
    files = [
        file for folder in all_project_folders(where) for file in transcripts_in_folder(folder)
    ]
    return [
        file for file in files if file.path.isascii() or replace_surrogates(file.path) == file.path
    ]


def transcripts_in_folder(folder: str) -> Iterator[TranscriptFile]:
    """Yield the transcripts in a project folder. If the folder can't be listed, yield no transcripts."""
    name = os.path.basename(folder)
    try:
        with os.scandir(folder) as iterator:
            entries = list(iterator)
    except OSError:
        return
    # This loop must be fast, because every search runs it for thousands of entries.
    for entry in entries:
        entry_name = entry.name
        if not entry_name.endswith(TRANSCRIPT_SUFFIX):
            # A symbolic link is not followed, because it could lead to any folder.
            if is_session_id(entry_name) and not entry.is_symlink():
                for agent in subagents_in_folder(entry.path, entry_name):
                    file = _transcript_if_regular(agent.path, name, agent.session_id, agent.name)
                    if file is not None:
                        yield file
            continue
        stem = entry_name[: -len(TRANSCRIPT_SUFFIX)]
        if is_session_id(stem):
            file = _transcript_if_regular(entry.path, name, stem, "")
        elif stem.startswith(SUBAGENT_PREFIX):
            file = _transcript_if_regular(entry.path, name, "", stem)
        else:
            continue
        if file is not None:
            yield file


def _transcript_if_regular(
    path: str, folder: str, session_id: str, agent_name: str
) -> TranscriptFile | None:
    """Return the file if it is regular and not empty, else None. A symbolic link is not followed."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None  # The file was deleted after it was listed.
    if not status.st_size or not stat.S_ISREG(status.st_mode):
        return None
    mtime = status.st_mtime_ns
    if abs(mtime) > _MAX_INTEGER:
        mtime = max(-_MAX_INTEGER, min(mtime, _MAX_INTEGER))
    inode = status.st_ino & _MAX_INTEGER
    return TranscriptFile(path, folder, session_id, agent_name, inode, status.st_size, mtime)
