"""A session out of one's own bundle, every record of it: at home in another folder, otherwise as it was.

Its id stays where that is free, so that what was written down elsewhere still leads there. Left behind are file
checkpoints, whose copies no bundle holds; a record stands in their place, so that every other one keeps its number.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.relocate import Moving, moving
from resume_hooks.derive.imports.bundle.reading import Packed
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, find_session, private_folder
from resume_hooks.reading.export.bundle import STAYED, stand_in
from resume_hooks.sessions.project_folder import project_folder
from resume_hooks.storage.atomic import create_session
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.raw_edit import encode, with_field
from resume_hooks.transcripts.records import Record, kind, parse
from resume_hooks.transcripts.tokens import session_context
from resume_hooks.transcripts.transcript import scan

SNAPSHOTS = frozenset({"file-history-snapshot", "file-history-delta"})
"""Kinds of records that tell of copies of the user's files."""

_NAMING = (b'"sessionId"', b'"cwd"', b'_metadata"', b'"forkedFrom"', b'"original_session', b'"file-history-')
"""What a line holds that names a session, a folder, or a file's copies."""


@dataclass(frozen=True, slots=True)
class WholePlan:
    """Everything that ``write`` needs. ``called`` maps the ids of sessions to what they are called here.

    ``existing``: it is here already, with these very records. ``tokens`` of what a client would send.
    """

    packed: Packed
    path: str
    session_id: str
    existing: bool
    moving: Moving
    called: Mapping[str, str]
    uuids: tuple[str, ...]
    tokens: int

    def line(self, line: Line) -> bytes:
        """A line as it stands here, with its ending."""
        body = line.body
        if not any(naming in body for naming in _NAMING):
            return body + b"\n"
        record = parse(body) or {}
        if kind(record) in SNAPSHOTS:
            return stand_in(STAYED) + b"\n"
        for key, value in self._renamed(record).items():
            body = with_field(body, record, key, value) or encode({**record, key: value})
            record = {**record, key: value}
        return (self.moving.line(body) if record.get("cwd") else body) + b"\n"

    def _renamed(self, record: Record) -> Record:
        """The fields of a record that name sessions under another name than they have here."""
        changed = {key: self._name(key, record[key]) for key in record if key in _FIELDS}
        return {key: value for key, value in changed.items() if value != record[key]}

    def _name(self, key: str, value: object) -> object:
        if isinstance(value, str):
            return self._called(value) if _FIELDS[key] is str else value
        if not isinstance(value, dict):
            return value
        return {name: self._called(inner) if name in _NAMES else inner for name, inner in value.items()}

    def _called(self, value: object) -> object:
        """A session's id, or the path of its file, as it is here."""
        if not isinstance(value, str):
            return value
        stem = value.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
        here = self.called.get(stem)
        if here is None:
            return value
        return here if value == stem else os.path.join(os.path.dirname(self.path), f"{here}.jsonl")


_NAMES = frozenset({"parent_session_id", "parent_session_file", "parent_file", "sessionId"})
"""Fields inside a record's own that name a session."""

_FIELDS: dict[str, type] = {
    "sessionId": str,
    "original_session": str,
    "original_session_id": str,
    "forkedFrom": dict,
    "continue_metadata": dict,
    "trim_metadata": dict,
}
"""A record's fields that name a session, or hold what does."""


def plan(packed: Packed, home: str, called: Mapping[str, str], where: Where, *, force: bool) -> WholePlan:
    """Decide on a session of the folder ``home``, a real path; nothing is written. NotATranscript for what is none."""
    transcript = scan(packed.path)
    folder = project_folder(home, where)
    own_id = packed.head.session_id
    there = find_session(own_id, where)
    glance = HeadTail(packed.path)
    move = moving(packed.head.cwd or glance.cwd, home)
    first = WholePlan(
        packed=packed,
        path=os.path.join(folder, f"{own_id}.jsonl"),
        session_id=own_id,
        existing=False,
        moving=move,
        called={**called, own_id: own_id},
        uuids=tuple(node.uuid for node in transcript.nodes),
        tokens=session_context(packed.path, transcript.chain).tokens,
    )
    if there is None and not os.path.lexists(first.path):
        return first
    if there is not None and not force and _digest(there) == _will_be(_at(first, there, own_id)):
        return _at(first, there, own_id, existing=True)
    new_id = str(uuid.uuid4())
    return _at(first, os.path.join(folder, f"{new_id}.jsonl"), new_id)


def write(decided: WholePlan) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind."""
    passed: list[invariants.Check] = []

    def inspect(path: str) -> None:
        passed.extend(_checks(decided, path))
        invariants.require(passed, decided.path)

    folder = os.path.dirname(decided.path)
    if os.path.islink(folder):
        raise WriteFailed(f"{folder} is a symbolic link, so nothing was written", "Put the folder itself there.")
    try:
        private_folder(folder)
        with _beside(decided):
            create_session(decided.path, _lines(decided), inspect)
    except OSError as error:
        raise WriteFailed(
            f"Could not write {decided.path}: {error.strerror or error}", "Nothing was changed. Check free space."
        ) from error
    return receipt(decided, tuple(passed))


def receipt(decided: WholePlan, passed: tuple[invariants.Check, ...] = ()) -> Receipt:
    """The receipt of a plan, applied where checks were ``passed``; of one that is here already it is the parent."""
    made = not decided.existing
    return Receipt(
        session_id=decided.session_id if made else "",
        file=decided.path if made else "",
        title=decided.packed.head.title,
        parent_session_id="" if made else decided.session_id,
        parent_file="" if made else decided.path,
        kind="import",
        written=bool(passed),
        folder=decided.moving.new,
        tokens_before=decided.tokens,
        tokens_after=decided.tokens,
        checks=passed,
    )


def take_back(path: str) -> None:
    """Remove a session that was written a moment ago, with what lies beside it."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    shutil.rmtree(path.removesuffix(".jsonl"), ignore_errors=True)


def _at(decided: WholePlan, path: str, session_id: str, *, existing: bool = False) -> WholePlan:
    called = {**decided.called, decided.packed.head.session_id: session_id}
    return WholePlan(decided.packed, path, session_id, existing, decided.moving, called, decided.uuids, decided.tokens)


def _lines(decided: WholePlan) -> Iterator[bytes]:
    with open(decided.packed.path, "rb") as stream:
        for line in read_lines(stream):
            yield decided.line(line)


def _will_be(decided: WholePlan) -> str:
    digest = hashlib.sha256()
    for line in _lines(decided):
        digest.update(line)
    return digest.hexdigest()


def _digest(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""  # gone since it was found


@contextlib.contextmanager
def _beside(decided: WholePlan) -> Iterator[None]:
    """Put what lay beside the session there while it is written; it goes again where that fails. OSError."""
    own = decided.path.removesuffix(".jsonl")
    born = False
    made = False
    try:
        if decided.packed.files:
            os.mkdir(own, 0o700)  # what is there already is not ours to touch
            made = True
        for place, path in decided.packed.files:
            target = os.path.join(own, *place.split("/"))
            private_folder(os.path.dirname(target))
            shutil.copyfile(path, target)
            os.chmod(target, 0o600)
        yield
        born = True
    finally:
        if made and not born:
            shutil.rmtree(own, ignore_errors=True)


def _checks(decided: WholePlan, path: str) -> list[invariants.Check]:
    """What must be found as the session is read back."""
    was = decided.packed.head.session_id
    names = _Names(was if was != decided.session_id else "")
    found = scan(path, observers=(names,))
    return [
        invariants.Check("every line is there", found.line_count == decided.packed.sums.lines),
        invariants.Check("every record is there, in its order", tuple(n.uuid for n in found.nodes) == decided.uuids),
        invariants.Check("no line is damaged", not found.bad_lines and not found.torn),
        invariants.Check("no record carries an id that the session has elsewhere", names.sound),
        invariants.Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
    ]


class _Names:
    """An observer: whether no record carries the id that the session ``was`` called by, ``""`` for none."""

    def __init__(self, was: str) -> None:
        self._was = was
        self.sound = True

    def __call__(self, line: Line, record: Record, node: object) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        self.sound = self.sound and (not self._was or record.get("sessionId") != self._was)
