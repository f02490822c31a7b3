"""The secrets that the rules find in sessions, so that they can be removed from everything printed of them.

Whoever gives a session away reads all of it first (``secrets_of_sessions``); where a prompt waits
only its two ends are read (``secrets_of_ends``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from resume_hooks.paths import TOOL_RESULTS, open_regular, read_regular
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagents_of
from resume_hooks.transcripts.head_tail import REACH, HeadTail
from resume_hooks.transcripts.lines import read_lines

MAX_FILE = 32 * 1024 * 1024
"""Bytes of a file beside a transcript that is looked at."""


def secrets_of_sessions(sessions: Iterable[SessionFile]) -> Redactor:
    """A redactor that knows what the rules find in sessions, their sub-agents' transcripts and large results.

    A file that can't be read tells nothing: who gives it away fails there.
    """
    redactor = Redactor()
    for session in sessions:
        learn_file(redactor, session.path)
        for path in _files_beside(session.path):
            learn_file(redactor, path)
    return redactor


def learn_file(redactor: Redactor, path: str, offset: int = 0) -> None:
    """Learn from a file; from a transcript, the lines from the byte ``offset`` on, where one begins."""
    try:
        if not path.endswith(".jsonl"):
            redactor.learn(read_regular(path, MAX_FILE).decode("utf-8", "replace"))
            return
        with open_regular(path) as stream:
            stream.seek(offset)
            for line in read_lines(stream, offset):
                redactor.learn_line(line.body)
    except OSError:
        return


def secrets_of_ends(*sessions: HeadTail, spared: Iterable[str] = ()) -> Redactor:
    """A redactor that knows what the rules find in the first and the last part of sessions, as they were read.

    What is ``spared``, such as the ids of sessions, is never taken for a secret that was known
    before.
    """
    redactor = Redactor()
    redactor.spare(spared)
    for ends in {ends.path: ends for ends in sessions}.values():
        for part in dict.fromkeys((ends.head[:REACH], ends.tail[-REACH:])):
            for line in part.splitlines():
                redactor.learn_line(line)
    return redactor


def _files_beside(path: str) -> list[str]:
    """The large results and the sub-agents of the session in a file."""
    folder = os.path.join(path.removesuffix(".jsonl"), TOOL_RESULTS)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    return [
        *(os.path.join(folder, name) for name in names),
        *(agent.path for agent in subagents_of(path)),
    ]
