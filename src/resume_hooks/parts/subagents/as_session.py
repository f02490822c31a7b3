"""Read the transcript of a sub-agent as a session.

The session is a temporary copy that is removed when the verb ends. Its records have the same line
numbers as in the original, so references to them are valid. Clients before 2.0 wrote the records of
a sub-agent into the file of the session that started the sub-agent.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, WriteFailed
from resume_hooks.paths import TRANSCRIPT_SUFFIX, Where, make_private_folder
from resume_hooks.sessions.agents.registry import copies_folder
from resume_hooks.sessions.archived.sessions import project_folder_of_session
from resume_hooks.sessions.locate import (
    SessionFile,
    candidate_rows,
    is_subagent_locator,
    resolve_locator,
    resolve_transcript,
)
from resume_hooks.sessions.transcript_files import (
    SUBAGENT_PREFIX,
    file_of_owning_session,
    subagent_name,
)
from resume_hooks.storage.state_file import (
    create_file,
    discard_temporary,
    remove_stale_temporaries,
    temporary_path,
)
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import get_string, parse_record, prompt_text
from resume_hooks.transcripts.turns import opens_turn

SUBAGENT_NAME_PATTERN = re.compile(r"agent-[\w.-]{1,200}")
"""Matches the names that clients give to sub-agents."""

SUBAGENT_FIELD_NAMES = frozenset({"agentId", "agentName", "teamName"})
"""The fields by which a client recognises a record of a sub-agent or of a team member."""

_SIDECHAIN_FIELD_JSON = b'"isSidechain":true'
_INVALID_ID_CHARACTERS_PATTERN = re.compile(r"[^A-Za-z0-9-]")
_MAX_ID_CHARACTERS = 100
# Some sub-agents have no id from the client. The id of such a sub-agent consists of the first
# characters (this many) of its first record's id.
_SHORT_ID_CHARACTERS = 8


class InlineSubagent(NamedTuple):
    """A sub-agent whose records are in the file of the session that started it.

    ``name`` has the form ``agent-<id>``. ``task`` is the prompt of the sub-agent. ``line_numbers``
    count from 0.
    """

    name: str
    task: str
    line_numbers: set[int]
    last_timestamp: str
    byte_count: int


def read_inline_subagents(path: str) -> list[InlineSubagent]:
    """Return the sub-agents whose records are in the session file at ``path``, in file order.

    Raise SessionNotFound if the file cannot be read.
    """
    subagents: dict[str, InlineSubagent] = {}
    name, owner_names = "", dict[str, str]()
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            record = parse_record(line.body) if _SIDECHAIN_FIELD_JSON in line.raw else None
            if record is None or record.get("isSidechain") is not True:
                continue
            uuid, begins_turn = get_string(record, "uuid"), opens_turn(record, is_subagent=True)
            # Records of the session itself can occur between the records of a sub-agent.
            known_name = owner_names.get(get_string(record, "parentUuid")) or (
                "" if begins_turn else name
            )
            own_id = (
                _INVALID_ID_CHARACTERS_PATTERN.sub("", get_string(record, "agentId"))[
                    :_MAX_ID_CHARACTERS
                ]
                or _INVALID_ID_CHARACTERS_PATTERN.sub("", uuid)[:_SHORT_ID_CHARACTERS]
            )
            name = owner_names[uuid] = known_name or f"{SUBAGENT_PREFIX}{own_id}"
            subagent = subagents.setdefault(
                name, InlineSubagent(name, prompt_text(record) if begins_turn else "", set(), "", 0)
            )
            subagent.line_numbers.add(line.number)
            subagents[name] = subagent._replace(
                last_timestamp=get_string(record, "timestamp") or subagent.last_timestamp,
                byte_count=subagent.byte_count + len(line.raw),
            )
    return list(subagents.values())


@contextlib.contextmanager
def open_subagent_as_session(locator: str, cwd: str, where: Where) -> Iterator[SessionFile | None]:
    """Yield the sub-agent that a locator names, as a session, or None if the locator names no sub-agent.

    The ``source_path`` of the session is the original transcript. Raise AmbiguousLocator or
    SessionNotFound for an invalid locator, and WriteFailed if the copy cannot be written.
    """
    if is_subagent_locator(locator) or subagent_name(locator):
        match = _find_named_subagent(locator, cwd, where)
    else:
        match = None
    if match is None:
        yield None
        return
    # If this process is killed, the folder remains. The next process that copies a sub-agent
    # removes it.
    copy_folder = temporary_path(copies_folder(where))
    try:
        yield match.transcript._replace(
            path=_copy_subagent(match, copy_folder, where),
            source_path=match.transcript.original_path,
        )
    finally:
        discard_temporary(copy_folder)


class _FoundSubagent(NamedTuple):
    """A sub-agent and the transcript that contains it.

    ``line_numbers`` are the numbers of the sub-agent's lines in the transcript, or None if all
    lines belong to the sub-agent.
    """

    transcript: SessionFile
    name: str
    line_numbers: Container[int] | None


def _find_named_subagent(locator: str, cwd: str, where: Where) -> _FoundSubagent | None:
    """Return the sub-agent that a locator names, or None if the locator does not name a sub-agent."""
    try:
        session = resolve_transcript(locator, cwd, where, allow_other_agents=True)
    except SessionNotFound:
        if is_subagent_locator(locator):
            inline_match = _find_inline_subagent(locator, cwd, where)
        else:
            inline_match = None
        if inline_match is None:
            raise
        session, subagent = inline_match
        return _FoundSubagent(session, subagent.name, subagent.line_numbers)
    name = subagent_name(session.path)
    if name and SUBAGENT_NAME_PATTERN.fullmatch(name) and HeadTail(session.path).is_sidechain:
        return _FoundSubagent(session, name, None)
    return None


def _find_inline_subagent(
    locator: str, cwd: str, where: Where
) -> tuple[SessionFile, InlineSubagent] | None:
    """Return the sub-agent that a locator names, and the session whose file contains it.

    Return None if the session's file contains no sub-agents.
    """
    name_words, _, name = locator.strip().rpartition("/")
    session = resolve_locator(name_words, cwd, where, allow_other_agents=True)
    subagents = read_inline_subagents(session.path)
    matches = []
    for subagent in subagents:
        if subagent.name.startswith(name):
            matches.append(subagent)
    if subagents and not matches:
        raise SessionNotFound(
            f"Session {session.session_id} has no sub-agent {collapse_line(plain_line(name), 80)}",
            f"It has these sub-agents: {collapse_line(', '.join(subagent.name for subagent in subagents), 400)}.",
        )
    if len(matches) > 1:
        rows = (
            session._replace(session_id=f"{session.session_id}/{subagent.name}")
            for subagent in matches
        )
        raise AmbiguousLocator(locator, candidate_rows(rows, where))
    if matches:
        return (session, matches[0])
    return None


def _copy_subagent(found_subagent: _FoundSubagent, copy_folder: str, where: Where) -> str:
    """Write a copy of a sub-agent's transcript into a subfolder of ``copy_folder``, and return its path.

    The subfolder has the same name as the project folder of the session. Raise WriteFailed if the
    copy cannot be written.
    """
    session, name, line_numbers = found_subagent
    owner = file_of_owning_session(session.original_path, session.session_id.partition("/")[0])
    project = os.path.join(copy_folder, os.path.basename(project_folder_of_session(owner, where)))
    try:
        remove_stale_temporaries(make_private_folder(os.path.dirname(copy_folder), where))
        os.mkdir(copy_folder, 0o700)
        os.mkdir(project, 0o700)
        path = os.path.join(project, f"{name}{TRANSCRIPT_SUFFIX}")
        create_file(
            path, _convert_subagent_lines_to_session_lines(session.path, line_numbers), sync=False
        )
    except OSError as error:
        raise WriteFailed(
            f"The sub-agent could not be copied to {copy_folder}: {error.strerror or error}",
            "Nothing was changed. Check that the disk has free space and that the state folder is writable.",
        ) from error
    return path


def _convert_subagent_lines_to_session_lines(
    path: str, line_numbers: Container[int] | None
) -> Iterator[bytes]:
    """Yield the lines of a sub-agent, converted to lines of a session.

    Lines whose number is not in ``line_numbers`` are yielded as blank lines. If ``line_numbers`` is
    None, all lines are converted. Raise SessionNotFound if the file was deleted.
    """
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            if line_numbers is None or line.number in line_numbers:
                record = parse_record(line.body)
            else:
                record = None
            if record is not None and record.get("isSidechain"):
                fields = {}
                for key, value in record.items():
                    if key not in SUBAGENT_FIELD_NAMES:
                        fields[key] = value
                yield encode_record({**fields, "isSidechain": False}) + b"\n"
            else:
                yield line.raw if record is not None else b"\n"
