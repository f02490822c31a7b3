"""Titles of child sessions: the next step or the root's title, what made them, a number where two would be equal."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Literal, get_args

from resume_hooks.paths import read_bytes_at
from resume_hooks.sessions.session_files import SessionFile, sessions_in
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.system.text import collapse_line
from resume_hooks.transcripts.head_tail import REACH, TITLE_LENGTH, HeadTail

MAX_DIGITS = 4  # most digits of a counter; a longer number is part of the user's own title
LONGEST = 1_000  # characters of a title that may be one of ours; longer ones are somebody's own
PATIENCE = 10.0  # seconds to wait for another process that holds a folder's titles; a large child is checked in a few
Kind = Literal[
    "back", "fork", "handoff", "import", "rehome", "repair", "rollover", "scrub", "smart-trim", "trim", "untrim"
]  # fmt: skip
"""What is done to a session that makes a child."""

_TYPED = {"rewind": "back", "smart-trim": "trim --smart"}
"""Kinds that are shown as they are typed now; titles have both."""

_KINDS = "|".join(map(re.escape, (*get_args(Kind), "clear", *itertools.chain(*_TYPED.items()))))
_OURS = re.compile(rf"(?: · (?:{_KINDS})(?: \d{{1,{MAX_DIGITS}}})?)+\Z")
_END = re.compile(rf" · ({_KINDS})(?: \d{{1,{MAX_DIGITS}}})?\Z")
_FORMER = re.compile(
    rf"\A(?:(?:{_KINDS}) \d+ · )+"
)  # what children were called in 0.1.0: ``handoff 2 · <root title>``


def word_of(kind: str) -> str:
    """How a kind is shown."""
    if kind == "original":
        return "first session"
    return _TYPED.get(kind, kind)


def kind_beside(title: str, kind: str) -> str:
    """The word for a kind, ``""`` beside a title that ends in it."""
    end = _END.search(title[-LONGEST:])
    if end and word_of(end[1]) == word_of(kind):
        return ""
    return word_of(kind)


def child_title(root_title: str, kind: Kind, number: int = 1) -> str:
    """``<root title> · handoff 2``, the first without a number: at most 80 characters."""
    word = word_of(kind)
    end = f" · {word}" if number == 1 else f" · {word} {number}"
    return f"{collapse_line(root_title, TITLE_LENGTH - len(f' · {word} ') - MAX_DIGITS)}{end}"


def free_title(root_title: str, kind: Kind, folder: str, known: HeadTail | None = None) -> str:
    """The title with the first number that no session of the folder has, for as long as ``lock_titles``.

    ``known`` are the ends of one of them, as they are now.
    """
    front = json.dumps(child_title(root_title, kind), ensure_ascii=False).encode(
        "utf-8", "replace"
    )[:-1]
    front = b'"customTitle":' + front
    taken = set()
    for session in sessions_in(
        folder
    ):  # all: the client gives a title on when it clears or branches a session
        if known is not None and known.path == session.path:
            tail = known.tail[-REACH:]
        else:
            tail = _tail(session)
        start = tail.rfind(front) + len(front)
        if start >= len(front):
            end = tail.find(b'"', start, start + MAX_DIGITS + 2)
        else:
            end = -1
        number = tail[start : max(start, end)]
        if end == start or (number[:1] == b" " and number[1:].isdigit()):
            taken.add(int(number or 1))
    return child_title(root_title, kind, max(taken, default=0) + 1)


@contextlib.contextmanager
def lock_titles(folder: str) -> Iterator[None]:
    """Hold a folder's lock from the choice of a title until the session that has it is there.

    The folder itself is locked, so nothing is written. Without the lock after ``PATIENCE``, or on a
    volume that has none, the block runs all the same: two sessions may have the same title then.
    """
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        lock_descriptor(descriptor, PATIENCE)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def root_of(title: str) -> str:
    """The root's title as the title of a derived session tells it: what stands before kind and number."""
    if len(title) > LONGEST:
        return title
    return _OURS.sub("", _FORMER.sub("", title)) or title


def _tail(session: SessionFile) -> bytes:
    """The end of a file, by the fewest calls: a folder may hold thousands."""
    try:
        descriptor = os.open(session.path, os.O_RDONLY)
    except OSError:
        return b""  # gone since the folder was listed: its name is free
    try:
        return read_bytes_at(descriptor, REACH, max(0, session.size - REACH))
    finally:
        os.close(descriptor)
