"""Find the originals that placeholders name, and put the contents back.

What a placeholder names is untrusted: only sessions in a project folder or beside the trimmed one
are opened, and their backups; never a link. A record counts only under the uuid that was named.
Chains of trims are followed, cycles are cut.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import trash
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where, is_session_id, session_id_of
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.locator_forms import MIN_PREFIX
from resume_hooks.sessions.record_references import (
    RecordLine,
    RecordLines,
    Reference,
    line_of_reference,
)
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.storage.backups import backup_folder
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import MARKS, Origin, origin_of
from resume_hooks.transcripts.provenance import Parent
from resume_hooks.transcripts.records import Record, message, string
from resume_hooks.transcripts.write_scan import mend

MAX_STEPS = 100  # records on the way to one original; more can only be a forgery
CONTENTS = ("message", "toolUseResult", "attachment", "rendered")  # what a trim may have changed
NOTICE_REACH = 5_000  # characters at the end of a text in which a notice is looked for

_NOTICE = re.compile(
    r"See line (\d{1,9}) of ([^\n]{1,4096}?\.(?:jsonl|bak))"
    r"(?: for full content(?: \(original was [\d,]+ chars\)\.)?)?\]?\Z"
)
"""The end of a text that another tool of the field shortened; its lines count from 1."""

_NOTICE_WORDS = ("original", "truncated", "full content")  # one of which such a text has
_BACKUP = re.compile(
    r"([0-9a-f-]{36})\.pre-trim-[\w.-]{1,60}\.jsonl\.bak"
)  # that the same tool leaves


class OriginalRecord(NamedTuple):
    """The record ``asked`` for, and its ``original``: itself if whole, trimmed if what it was taken from is gone."""

    asked: RecordLine
    original: RecordLine


def look_up_original(reference: Reference, cwd: str, where: Where) -> OriginalRecord:
    """The original of the record that a reference names, from a folder. UsageError for none.

    SessionNotFound.
    """
    originals = Originals(where)
    asked = _referenced_line(reference, originals, cwd, where)
    record = asked.record()
    original = originals.of(record, asked.file) if record else None
    if original is None and record and is_marked(record):
        raise SessionNotFound(
            f"The original of {asked.reference} is gone: {originals.where_it_was(record)}",
            f"What is left is the trimmed record in line {asked.number} of {asked.file}.",
        )
    return OriginalRecord(asked, original or asked)


def _referenced_line(
    reference: Reference, originals: Originals, cwd: str, where: Where
) -> RecordLine:
    """The record itself; if its session is gone, from a backup that an in-place trim left."""
    try:
        session = locate.resolve(reference.session, cwd, where, foreign=True)
    except SessionNotFound:
        prefix = reference.session.lower()
        if len(prefix) >= MIN_PREFIX:
            backed_up = originals.backed_up(prefix)
        else:
            backed_up = []
        if len(backed_up) != 1:
            raise
        for path in originals.backups(backed_up[0]):
            with contextlib.suppress(UsageError):  # a later one may hold more lines
                return line_of_reference(reference, RecordLines(path, backed_up[0]))
        raise
    return line_of_reference(reference, RecordLines(session.path, session.session_id))


class Originals:
    """Find originals within one config folder; no file is indexed twice."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._family = Family(where)
        self._files: dict[str, RecordLines | None] = {}
        self._candidates: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
        self._named: dict[str, RecordLines] = {}

    def of(self, record: Record, file: str) -> RecordLine | None:
        """The original of a trimmed ``record`` in ``file``; None if it can't be found any more."""
        return self._follow(record, file, set())

    def original_of_line(self, session: str, number: int) -> RecordLine:
        """The original of the record in line ``number`` of a session.

        SessionNotFound where nothing is left of it.
        """
        if session not in self._named:
            try:
                found = locate.resolve(session, "", self._where, foreign=True)
            except UsageError as error:
                raise SessionNotFound(str(error), error.remedy) from error
            self._named[session] = RecordLines(found.path, found.session_id)
        asked = self._named[session].at(number)
        record = asked.record() if asked else None
        if asked is None or record is None:
            raise SessionNotFound(f"session {session} has no record {number:,} any more")
        return self.of(record, asked.file) or asked

    def where_it_was(self, record: Record) -> str:
        """A sentence about where the original is by the trimmed record's own words, and how to restore it."""
        origin = next(iter(origins_in(record)), None)
        if origin is None:
            return "nothing says where it was"
        session_id = origin.session_id or session_id_of(origin.file) or ""
        deleted = any(entry.session_id == session_id for entry in trash.all_deleted(self._where))
        if deleted:
            back = f"; bring it back: resume-hooks restore {session_id}"
        else:
            back = ""
        return (
            f"it was line {origin.record} of {plain_line(origin.file or origin.session_id)}{back}"
        )

    def backups(self, session_id: str) -> list[str]:
        """The files that in-place trims of a session left in our state folder, oldest first."""
        folder = os.path.abspath(backup_folder(session_id, self._where))
        if not is_session_id(session_id) or os.path.islink(folder):
            return []
        try:
            with os.scandir(folder) as rows:
                files = []
                for row in rows:
                    if row.name.endswith(".jsonl") and row.is_file(follow_symlinks=False):
                        files.append(row)
                return sorted(row.path for row in files)  # named by their instants
        except OSError:
            return []

    def backed_up(self, prefix: str) -> list[str]:
        """The ids, starting with ``prefix``, of sessions that have backups."""
        try:
            names = os.listdir(backup_folder("", self._where))
        except OSError:
            return []
        return sorted(name for name in names if name.startswith(prefix) and self.backups(name))

    def _follow(self, record: Record, file: str, seen: set[tuple[str, int]]) -> RecordLine | None:
        for entry, found in self._named_by(record, file):
            if (entry.file, entry.number) in seen or len(seen) == MAX_STEPS:
                continue
            seen.add((entry.file, entry.number))
            # If the trail ends, this record is the most that is left.
            return self._follow(found, entry.file, seen) or entry
        return None

    def _named_by(self, record: Record, file: str) -> Iterator[tuple[RecordLine, Record]]:
        """The records that a trimmed one names as its original, the likeliest first, each with the uuid named."""
        here = os.path.dirname(os.path.abspath(file))
        for origin in origins_in(record):
            key = origin.session_id, origin.file, here
            if key not in self._candidates:
                self._candidates[key] = list(dict.fromkeys(self._files_of(origin, here)))
            for path, session_id in self._candidates[key]:
                entry = self._entry(path, session_id, origin)
                found = entry.record() if entry else None
                if (
                    entry is not None
                    and found is not None
                    and records.kind(found) == records.kind(record)
                ):
                    yield entry, found

    def _entry(self, path: str, session_id: str, origin: Origin) -> RecordLine | None:
        try:
            if path not in self._files:
                self._files[path] = None
                self._files[path] = RecordLines(path, session_id)
            entries = self._files[path]
            if entries and origin.uuid:
                return entries.of(origin.uuid, origin.record)
            return None
        except SessionNotFound:
            return None  # gone since it was listed

    def _files_of(self, origin: Origin, here: str) -> Iterator[tuple[str, str]]:
        """The files that may hold an original, each with its session's id: none that we may not open."""
        backup = _BACKUP.fullmatch(os.path.basename(origin.file))
        folder = os.path.basename(os.path.dirname(origin.file))
        names = (
            origin.session_id,
            session_id_of(origin.file),
            backup.group(1) if backup else "",
            folder,
        )
        session_id = next((name for name in names if name and is_session_id(name)), "")
        backups = self.backups(session_id)
        if origin.file in backups or self._may_open(origin.file, here):
            yield origin.file, session_id or origin.session_id
        if not session_id:
            return
        for file in (origin.file, os.path.join(here, f"{session_id}.jsonl")):
            path = self._family.locate(
                Parent(session_id, file, "", "", ""), os.path.join(here, "child")
            )
            if path is not None:
                yield path, session_id
        for copy in all_sessions(self._where, session_id):
            yield (copy.path, session_id)
        yield from ((path, session_id) for path in backups)

    def _may_open(self, path: str, here: str) -> bool:
        """Whether a file that is not named as a session lies where sessions do, and is not a link.

        A transcript that was trimmed by its path may have any name, and another tool leaves backups
        beside a session.
        """
        if path != os.path.abspath(path):
            return False  # dots could lead out
        folder, name = os.path.split(path)
        in_project = os.path.dirname(folder) == self._where.projects and not os.path.islink(folder)
        fits = _BACKUP.fullmatch(name) or (name.endswith(".jsonl") and session_id_of(name) is None)
        return (
            bool(fits)
            and (folder == here or in_project)
            and os.path.isfile(path)
            and not os.path.islink(path)
        )


class Restoring:
    """The edit of one record: its contents as in the original, read when they are written."""

    def __init__(self, original: RecordLine) -> None:
        self._original = original

    def __call__(self, record: Record) -> Record | None:
        """The record with its contents back.

        SessionNotFound if the original is gone since it was found.
        """
        original = self._original.record()
        if original is None:
            raise SessionNotFound(
                f"{self._original.file} changed while it was read", "Run the command again."
            )
        return restore_record(record, original)


def restore_record(record: Record, original: Record) -> Record | None:
    """A trimmed ``record`` with the contents of its ``original``.

    All else of it stays, its token counts too.

    What no API accepts stays out, as when the record was trimmed: calls and results that it no
    longer had, blank texts, unsigned thinking. None if nothing is left.
    """
    whole = {}
    for key, value in record.items():
        if key not in MARKS:
            whole[key] = value
    whole |= {
        key: value for key, value in original.items() if key in MARKS
    }  # of what stays trimmed in it
    for key in CONTENTS:
        if key in original:
            whole[key] = original[key]
        else:
            whole.pop(key, None)
    if not message(whole):
        return whole
    restored_message = {}
    for key, value in message(original).items():
        if key != "usage":
            restored_message[key] = value
    if isinstance(restored_message.get("content"), list):
        gone = call_result_pairs(original) - call_result_pairs(record)
        restored_message["content"] = [
            b for b in restored_message["content"] if not (isinstance(b, dict) and _pair(b) in gone)
        ]
    if "usage" in message(record):
        restored_message["usage"] = message(record)["usage"]
    return mend({**whole, "message": restored_message})


def is_marked(record: Record) -> bool:
    """Whether a record is marked as trimmed."""
    return record.get("truncated") is True


def origins_in(record: Record) -> list[Origin]:
    """Where the original is by a record's own words: a mark, or another tool's notices at the ends of its texts."""
    if is_marked(record):
        origin = origin_of(record)
        if origin:
            return [origin]
        return []
    ends = (text[-NOTICE_REACH:] for text in _record_texts(record))
    notices = (
        _NOTICE.search(end)
        for end in ends
        if "See line " in end and any(word in end for word in _NOTICE_WORDS)
    )
    uuid = string(record, "uuid")
    rows = (
        Origin("", notice.group(2), uuid, int(notice.group(1)) - 1) for notice in notices if notice
    )
    return list(dict.fromkeys(origin for origin in rows if origin.record >= 0))


def _record_texts(record: Record) -> Iterator[str]:
    for block in records.blocks(record):
        yield string(block, "text")
        for value in records.mapping(block, "input").values():
            if isinstance(value, str):
                yield value
        for part in records.result_blocks(block):
            yield string(part, "text")


def call_result_pairs(record: Record) -> set[tuple[str, str]]:
    """The calls and results in a record, by kind and id."""
    return {pair for block in records.blocks(record) if (pair := _pair(block))}


def _pair(block: Record) -> tuple[str, str] | None:
    kind = string(block, "type")
    if kind in {records.CALL, records.RESULT}:
        return (kind, records.call_id(block))
    return None
