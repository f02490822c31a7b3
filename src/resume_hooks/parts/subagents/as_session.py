"""The transcript of a sub-agent as that of a session, in a copy of ours that goes when the verb has ended.

Its lines have the numbers of the original's, so that references name the records there. Clients before 2.0 wrote a
sub-agent's records into the file of the session that started it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, WriteFailed
from resume_hooks.paths import ENDING, Where, private_folder
from resume_hooks.sessions.agents.registry import copies_in
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.sessions.locate import SessionFile, candidates, names_subagent, resolve, resolve_transcript
from resume_hooks.sessions.transcript_files import PREFIX, file_of_owner, subagent_name
from resume_hooks.storage.state_file import create, discard, sweep, temporary_in
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import parse, prompt_text, string
from resume_hooks.transcripts.turns import opens_turn

NAME = re.compile(r"agent-[\w.-]{1,200}")
"""The names that are told; others are no client's."""

OWN = frozenset({"agentId", "agentName", "teamName"})
"""The fields by which a client takes a record for one of a sub-agent's, or of a member of a team."""

_MARK = b'"isSidechain":true'
_FOREIGN, _LONGEST = re.compile(r"[^A-Za-z0-9-]"), 100  # what no id of theirs has, and how long none is
_SHOWN = 8  # characters of the first record's id by which one is named that has no id of its own


class InlineAgent(NamedTuple):
    """A sub-agent in a session's file: ``agent-<id>``, what it was asked, its 0-based ``lines`` and last instant."""

    name: str
    asked: str
    lines: set[int]
    ended: str
    size: int


def inline_agents(path: str) -> list[InlineAgent]:
    """Those of a session's file, in their order. SessionNotFound where it can't be read."""
    found: dict[str, InlineAgent] = {}
    name, owners = "", dict[str, str]()
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            record = parse(line.body) if _MARK in line.raw else None
            if record is None or record.get("isSidechain") is not True:
                continue
            uuid, begins = string(record, "uuid"), opens_turn(record, subagent=True)
            known = owners.get(string(record, "parentUuid")) or ("" if begins else name)  # a gap: the one before it
            own = _FOREIGN.sub("", string(record, "agentId"))[:_LONGEST] or _FOREIGN.sub("", uuid)[:_SHOWN]
            name = owners[uuid] = known or f"{PREFIX}{own}"
            one = found.setdefault(name, InlineAgent(name, prompt_text(record) if begins else "", set(), "", 0))
            one.lines.add(line.number)
            found[name] = one._replace(ended=string(record, "timestamp") or one.ended, size=one.size + len(line.raw))
    return list(found.values())


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
