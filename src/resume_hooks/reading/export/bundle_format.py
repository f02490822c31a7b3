"""The form of a bundle: the lines that frame what it holds."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

KEY = "resume_hooks_bundle"
VERSION = 2  # the form that is written; a bundle of a newer one is refused
UNSEALED = 1  # the form without seals: of such a bundle only the records are known to be as they were
OPENING = b'{"%s":' % KEY.encode()  # how a bundle begins, and nothing else does

FILES = b'],"files":['
SUMS = b'],"sums":'
END = b"]}"

MAX_FILE = 32 * 1024 * 1024  # bytes of a file beside a transcript that goes along
MAX_FILES = 20_000  # files beside a transcript that go along
MAX_SESSIONS = 1_000  # sessions in one bundle
OUTPUTS = "tool-results"  # the folder of a session's large tool outputs
ABOUT = ".meta.json"  # what the name of a file ends with that tells what a sub-agent is

DAMAGED, STAYED = "damaged-line", "file-checkpoint-left-behind"
"""Kinds of records that stand where a line could not go along; so every other record keeps its number."""


class Head(NamedTuple):
    """What a bundle tells of a session before its records; instants as in transcripts.

    ``parent_session_id`` and ``kind`` are ``""`` for a session that came from none.
    """

    session_id: str
    title: str
    cwd: str
    created: str
    ended: str
    parent_session_id: str
    kind: str


class Sums(NamedTuple):
    """What a bundle tells of a session after its records: their number, and a digest over their lines in hex.

    ``damaged`` lines held no record; ``left_out`` files beside it were too large, or could not be read. ``seal`` is the
    digest of everything that the bundle says of the session (``Seal``), ``""`` in the form without.
    """

    lines: int
    sha256: str
    damaged: int
    left_out: int
    seal: str = ""


class Seal:
    """A digest over all that a bundle holds of a session: its own row, its records, its files, its counts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def row(self, row: bytes) -> None:
        """Take in a row of the bundle, without its line's ending and its comma."""
        self._digest.update(row + b"\n")

    def sealed(self, sums: Sums) -> Sums:
        """The sums of the session with the seal, which covers them too."""
        self.row(orjson.dumps(sums._replace(seal="")._asdict()))
        return sums._replace(seal=self._digest.hexdigest())


def stand_in(kind: str) -> bytes:
    """A record that stands for a line, without its ending."""
    return orjson.dumps({"type": kind})


def opening(facts: dict[str, Any]) -> bytes:
    """The first line of a bundle."""
    return orjson.dumps({KEY: VERSION, **facts})[:-1] + b',"sessions":[\n'


def head_line(head: Head) -> bytes:
    """The line that a session begins with."""
    return b'{"session":%s,"records":[\n' % orjson.dumps(head._asdict())


def sums_line(sums: Sums, *, last: bool) -> bytes:
    """The line that a session ends with."""
    return b"%s%s}%s\n" % (SUMS, orjson.dumps(sums._asdict()), b"" if last else b",")
