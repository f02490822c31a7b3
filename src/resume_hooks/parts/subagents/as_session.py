"""The transcript of a sub-agent as that of a session, in a copy of ours that goes when the verb has ended.

Its lines have the numbers of the original's, so that references name the records there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Iterator

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, WriteFailed
from resume_hooks.parts.subagents.inline import InlineAgent, inline_agents
from resume_hooks.paths import ENDING, Where, private_folder
from resume_hooks.sessions.agents.registry import copies_in
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.sessions.locate import SessionFile, candidates, names_subagent, resolve, resolve_transcript
from resume_hooks.sessions.transcript_files import file_of_owner, subagent_name
from resume_hooks.storage.state_file import create, discard, sweep, temporary_in
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import parse

NAME = re.compile(r"agent-[\w.-]{1,200}")
"""The names that are told; others are no client's."""

OWN = frozenset({"agentId", "agentName", "teamName"})
"""The fields by which a client takes a record for one of a sub-agent's, or of a member of a team."""


@contextlib.contextmanager
def held(locator: str, cwd: str, where: Where) -> Iterator[SessionFile | None]:
    """The sub-agent that a locator names, as a session whose ``source`` is the original; None where it names none.

    AmbiguousLocator, SessionNotFound as of any locator; WriteFailed where no copy can be made.
    """
    named = _named(locator, cwd, where) if names_subagent(locator) or subagent_name(locator) else None
    if named is None:
        yield None
        return
    found, name, lines = named
    own = temporary_in(copies_in(where))  # after a kill the next copy takes it away
    try:
        yield found._replace(path=_copy(found, name, lines, own, where), source=found.original)
    finally:
        discard(own)


def _named(locator: str, cwd: str, where: Where) -> tuple[SessionFile, str, Container[int] | None] | None:
    """The transcript, the name of the sub-agent, and its lines there (None: all); None where it is none's."""
    try:
        found = resolve_transcript(locator, cwd, where, foreign=True)
    except SessionNotFound:
        inline = _inline(locator, cwd, where) if names_subagent(locator) else None
        if inline is None:
            raise
        return inline[0], inline[1].name, inline[1].lines
    name = subagent_name(found.path)
    return (found, name, None) if name and NAME.fullmatch(name) and HeadTail(found.path).is_sidechain else None


def _inline(locator: str, cwd: str, where: Where) -> tuple[SessionFile, InlineAgent] | None:
    """The session and the one of its own file that is named; None for none."""
    words, _, name = locator.strip().rpartition("/")
    session = resolve(words, cwd, where, foreign=True)
    there = inline_agents(session.path)
    fitting = [one for one in there if one.name.startswith(name)]
    if there and not fitting:
        raise SessionNotFound(
            f"No sub-agent {one_line(plain_line(name), 80)} of session {session.session_id}",
            f"Its file holds {one_line(', '.join(one.name for one in there), 400)}.",
        )
    if len(fitting) > 1:
        rows = (session._replace(session_id=f"{session.session_id}/{one.name}") for one in fitting)
        raise AmbiguousLocator(locator, candidates(rows, where))
    return (session, fitting[0]) if fitting else None


def _copy(found: SessionFile, name: str, lines: Container[int] | None, own: str, where: Where) -> str:
    """Write the copy into a folder of ``own`` that has the name of the session's project. WriteFailed."""
    owner = file_of_owner(found.original, found.session_id.partition("/")[0])
    project = os.path.join(own, os.path.basename(project_folder_of(owner, where)))
    try:
        sweep(private_folder(os.path.dirname(own), where))
        os.mkdir(own, 0o700)
        os.mkdir(project, 0o700)
        path = os.path.join(project, f"{name}{ENDING}")
        create(path, _as_sessions(found.path, lines), lasting=False)
    except OSError as error:
        raise WriteFailed(
            f"The sub-agent could not be copied to {own}: {error.strerror or error}",
            "Nothing was changed. Check free space and the state folder.",
        ) from error
    return path


def _as_sessions(path: str, lines: Container[int] | None) -> Iterator[bytes]:
    """The lines of a file (None: all) as those of a session; the others are blank. SessionNotFound if it is gone."""
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            record = parse(line.body) if lines is None or line.number in lines else None
            if record is not None and record.get("isSidechain"):
                kept = {key: value for key, value in record.items() if key not in OWN}
                yield encode({**kept, "isSidechain": False}) + b"\n"
            else:
                yield line.raw if record is not None else b"\n"
