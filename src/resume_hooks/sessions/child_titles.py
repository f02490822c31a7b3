"""Make the titles of child sessions.

A title is the next step or the title of the first session, followed by the child's kind and, if
necessary, a number, for example ``Fix the parser · handoff 2``.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Literal, get_args

from resume_hooks.paths import read_bytes_at
from resume_hooks.sessions.session_files import SessionFile, sessions_in_project_folder
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.system.text import collapse_line
from resume_hooks.transcripts.head_tail import (
    BYTES_READ_AT_EACH_END,
    MAX_TITLE_CHARACTERS,
    HeadTail,
)

# Maximum number of digits in the number at the end of a title. A number with more digits is part of
# the user's own title.
MAX_TITLE_SUFFIX_DIGITS = 4
# Maximum number of characters in a title that we made. A longer title was chosen by the user.
MAX_CHILD_TITLE_CHARACTERS = 1_000
# Number of seconds to wait for the lock that protects the titles in a folder. The process that
# holds the lock may take a few seconds to check a large child.
MAX_TITLE_LOCK_WAIT_SECONDS = 10.0
ChildKind = Literal[
    "back", "fork", "handoff", "import", "rehome", "repair", "rollover", "scrub", "smart-trim", "trim", "untrim"
]  # fmt: skip
"""The operation that made a child."""

_DISPLAYED_KINDS_BY_KIND = {"rewind": "back", "smart-trim": "trim --smart"}
"""Kinds that are displayed under a different name. Titles may contain either name."""

_ANY_KIND_EXPRESSION = "|".join(
    map(
        re.escape,
        (*get_args(ChildKind), "clear", *itertools.chain(*_DISPLAYED_KINDS_BY_KIND.items())),
    )
)
_KIND_SUFFIXES_PATTERN = re.compile(
    rf"(?: · (?:{_ANY_KIND_EXPRESSION})(?: \d{{1,{MAX_TITLE_SUFFIX_DIGITS}}})?)+\Z"
)
_FINAL_KIND_SUFFIX_PATTERN = re.compile(
    rf" · ({_ANY_KIND_EXPRESSION})(?: \d{{1,{MAX_TITLE_SUFFIX_DIGITS}}})?\Z"
)
# Matches the beginning of child titles in version 0.1.0: ``handoff 2 · <root title>``.
_FORMER_KIND_PREFIX_PATTERN = re.compile(rf"\A(?:(?:{_ANY_KIND_EXPRESSION}) \d+ · )+")


def displayed_kind(kind: str) -> str:
    """Return the name under which a kind is displayed."""
    if kind == "original":
        return "first session"
    return _DISPLAYED_KINDS_BY_KIND.get(kind, kind)


def kind_unless_in_title(title: str, kind: str) -> str:
    """Return the displayed name of a kind, or ``""`` if the title already ends in that name."""
    suffix = _FINAL_KIND_SUFFIX_PATTERN.search(title[-MAX_CHILD_TITLE_CHARACTERS:])
    if suffix and displayed_kind(suffix[1]) == displayed_kind(kind):
        return ""
    return displayed_kind(kind)


def child_title(root_title: str, kind: ChildKind, number: int = 1) -> str:
    """Return a title such as ``<root title> · handoff 2``, of at most 80 characters.

    The number is left out if it is 1.
    """
    displayed = displayed_kind(kind)
    suffix = f" · {displayed}" if number == 1 else f" · {displayed} {number}"
    max_suffix_characters = len(f" · {displayed} ") + MAX_TITLE_SUFFIX_DIGITS
    return f"{collapse_line(root_title, MAX_TITLE_CHARACTERS - max_suffix_characters)}{suffix}"


def unused_title(
    root_title: str, kind: ChildKind, folder: str, known_ends: HeadTail | None = None
) -> str:
    """Return a title with the next unused number among the sessions in the folder.

    Call this function inside ``with lock_titles(folder)``, so that no other process chooses the
    same title. ``known_ends`` are the beginning and the end of one of the sessions, if they were
    already read.
    """
    prefix = json.dumps(child_title(root_title, kind), ensure_ascii=False).encode(
        "utf-8", "replace"
    )[:-1]
    prefix = b'"customTitle":' + prefix
    taken_numbers = set()
    for session in sessions_in_project_folder(
        folder
        # Search all sessions: when the client clears or branches a session, the new session gets
        # the same title.
    ):
        if known_ends is not None and known_ends.path == session.path:
            tail = known_ends.tail[-BYTES_READ_AT_EACH_END:]
        else:
            tail = _read_tail(session)
        start = tail.rfind(prefix) + len(prefix)
        if start >= len(prefix):
            end = tail.find(b'"', start, start + MAX_TITLE_SUFFIX_DIGITS + 2)
        else:
            end = -1
        number = tail[start : max(start, end)]
        if end == start or (number[:1] == b" " and number[1:].isdigit()):
            taken_numbers.add(int(number or 1))
    return child_title(root_title, kind, max(taken_numbers, default=0) + 1)


@contextlib.contextmanager
def lock_titles(folder: str) -> Iterator[None]:
    """Prevent other processes from choosing a title in a folder until the new session exists.

    The folder itself is locked, so no lock file is written. If the lock is not available within
    ``MAX_TITLE_LOCK_WAIT_SECONDS``, or if the volume does not support locks, the block runs without
    the lock. Two sessions may then get the same title.
    """
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        lock_descriptor(descriptor, MAX_TITLE_LOCK_WAIT_SECONDS)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def root_title_of(title: str) -> str:
    """Return the title of the first session by removing kinds and numbers from a child's title."""
    if len(title) > MAX_CHILD_TITLE_CHARACTERS:
        return title
    return _KIND_SUFFIXES_PATTERN.sub("", _FORMER_KIND_PREFIX_PATTERN.sub("", title)) or title


def _read_tail(session: SessionFile) -> bytes:
    """Return the end of a session's file.

    A folder may have thousands of files, so the file is read with as few system calls as possible.
    """
    try:
        descriptor = os.open(session.path, os.O_RDONLY)
    except OSError:
        return b""  # The file was deleted after it was listed, so its title is not used any more.
    try:
        return read_bytes_at(
            descriptor, BYTES_READ_AT_EACH_END, max(0, session.size - BYTES_READ_AT_EACH_END)
        )
    finally:
        os.close(descriptor)
