"""The pending handoff: a child that the client's next ``/clear`` opens, or the next start announces.

Invariant: a client process has at most one pending handoff. The handoff is used once, and only if
the child has not been opened. A note is valid only if it matches the client's process, the folder
and the child's file. This module uses only the standard library and must run on Python 3.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, timezone
from typing import Any, Dict, NamedTuple, Optional

from resume_hooks.hooks import hook_state
from resume_hooks.hooks.hook_state import is_valid_timestamp
from resume_hooks.paths import (
    canonical_path,
    is_session_file,
    is_session_id,
    open_regular,
    session_id_from_path,
)
from resume_hooks.system.processes import read_process_start_time

# the maximum number of characters of the stored opening; ``start_parts`` delivers no more
MAX_OPENING_CHARACTERS = 38_000
# the number of seconds during which starts in the same folder announce a handoff
ANNOUNCEMENT_PERIOD_SECONDS = 3_600
# the number of seconds by which the clock may be set back without making a handoff invalid
CLOCK_TOLERANCE_SECONDS = 5

_TEXT_FIELD_NAMES = ("started", "parent_id", "child_id", "child_file", "opening")
_NUMBER_FIELD_NAMES = ("pid", "child_size")
SEARCHED_END_BYTES = (
    262_144  # how many bytes at the end of a session's file are searched for the last answers
)

_NOTE_PREFIX = "handoff-"
_ANNOUNCED_SUFFIX = ".told"
_UNANNOUNCED_SUFFIX = ".json"


class PendingHandoff(NamedTuple):
    """A child that waits for the ``/clear`` of the client process that created it.

    ``pid`` and ``started`` identify the process: its id and its start time. ``child_size`` is the
    size of the child's file in bytes; if the file has grown, the child has been opened. ``at`` is
    the time of the handoff in seconds since 1970. ``kind`` is handoff or rollover.
    """

    pid: int
    started: str
    parent_id: str
    child_id: str
    child_file: str
    child_size: int
    at: float
    opening: str
    kind: str = "handoff"

    @property
    def is_pending(self) -> bool:
        """Whether the child has not been opened yet, and the handoff has not expired."""
        try:
            is_untouched = (
                is_session_file(self.child_file)
                and os.path.getsize(self.child_file) == self.child_size
            )
        except OSError:
            return False
        return (
            is_untouched
            and -CLOCK_TOLERANCE_SECONDS
            <= time.time() - self.at
            <= hook_state.NOTE_LIFETIME_SECONDS
        )

    def was_made_by(self, pid: int) -> bool:
        """Check whether the process with this id created the handoff.

        A process with the same id but a different start time is a different process.
        """
        now = read_process_start_time(pid)
        return self.pid == pid and (not now or not self.started or now == self.started)

    def is_in_folder(self, folder: str) -> bool:
        """Check whether the child's file is in a project folder."""
        return canonical_path(os.path.dirname(self.child_file)) == canonical_path(folder)


def store_handoff(handoff: PendingHandoff) -> None:
    """Store a handoff in place of the client's last handoff. Raise OSError if it can't be written."""
    hook_state.delete_old_notes(_NOTE_PREFIX)
    name = f"{_NOTE_PREFIX}{handoff.pid}-{handoff.child_id}{_UNANNOUNCED_SUFFIX}"
    hook_state.write_note(name, handoff._asdict())
    for other_name in hook_state.list_note_names(f"{_NOTE_PREFIX}{handoff.pid}-"):
        if other_name != name:
            hook_state.consume_note(other_name)


def consume_cleared_handoff(
    pid: int, folder: str, cleared_id: Optional[str]
) -> Optional[PendingHandoff]:
    """Return the pending handoff of the session that the client has just cleared, and delete its note.

    ``cleared_id`` is the id of the cleared session, or None if it is unknown. Return None if that
    session has no pending handoff. A handoff of another session is kept, because the client may
    return to that session.
    """
    for name in hook_state.list_note_names(f"{_NOTE_PREFIX}{pid}-"):
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if handoff is None or cleared_id not in {None, handoff.parent_id}:
            continue
        if handoff.was_made_by(pid) and handoff.is_in_folder(folder):
            was_pending = handoff.is_pending
            if _consume_handoff_note(name) and was_pending:
                return handoff
            return None
    return None


def is_handoff_outdated(handoff: PendingHandoff) -> bool:
    """Check whether the model has answered in the parent session since the handoff."""
    path = os.path.join(os.path.dirname(handoff.child_file), f"{handoff.parent_id}.jsonl")
    try:
        with open_regular(path, follow=False) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - SEARCHED_END_BYTES))
            lines = stream.read(SEARCHED_END_BYTES).split(b"\n")
    except OSError:
        return False
    created = datetime.fromtimestamp(handoff.at, timezone.utc).isoformat(timespec="milliseconds")[
        :-6
    ]
    return any(_time_of_answer(row) > created for row in lines if b'"assistant"' in row)


def _time_of_answer(line: bytes) -> str:
    """Return the time of a model's answer, or ``""`` if the line contains any other record."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        if (
            isinstance(record, dict)
            and record.get("type") == "assistant"
            and record.get("isSidechain") is not True
        ):
            return str(record.get("timestamp", ""))
    return ""


def consume_handoffs_of_parent(parent_id: str) -> None:
    """Delete the handoffs of a session. Call this function when the session is continued in another way."""
    for name in hook_state.list_note_names(_NOTE_PREFIX):
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if handoff is not None and handoff.parent_id == parent_id:
            _consume_handoff_note(name)


def consume_handoff_to_child(child_id: str) -> None:
    """Delete the handoff to a child. Call this function when the child has been opened."""
    for name in hook_state.list_note_names(_NOTE_PREFIX):
        if _note_stem(name).endswith(f"-{child_id}"):
            _consume_handoff_note(name)


def find_handoff_to_announce(folder: str) -> Optional[PendingHandoff]:
    """Return the newest handoff in a folder that no start has announced yet. The handoff stays pending.

    Mark the returned handoff as announced, and also every handoff that must not be announced, so
    that later starts skip them.
    """
    candidates = []
    for name in hook_state.list_note_names(_NOTE_PREFIX):
        if not name.endswith(_UNANNOUNCED_SUFFIX):
            continue
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if (
            handoff is None
            or not handoff.is_pending
            or time.time() - handoff.at > ANNOUNCEMENT_PERIOD_SECONDS
        ):
            _mark_announced(name)
        elif handoff.is_in_folder(folder) and _mark_announced(name):
            candidates.append(handoff)
    return max(candidates, key=lambda handoff: handoff.at, default=None)


def _mark_announced(name: str) -> bool:
    """Mark a note as announced. If several clients try at the same time, only one gets True."""
    with contextlib.suppress(OSError):
        os.rename(
            hook_state.note_path(name),
            hook_state.note_path(_note_stem(name) + _ANNOUNCED_SUFFIX),
        )
        return True
    return False


def _consume_handoff_note(name: str) -> bool:
    """Delete a note, even if another client renames it meanwhile. Return True only to the first caller."""
    return any(
        hook_state.consume_note(_note_stem(name) + ending)
        for ending in (_UNANNOUNCED_SUFFIX, _ANNOUNCED_SUFFIX)
    )


def _note_stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _parse_handoff_note(note: Dict[str, Any], name: str) -> Optional[PendingHandoff]:
    """Return the handoff in a note. Return None if the note is invalid or does not match its name."""
    has_texts = all(isinstance(note.get(field), str) for field in _TEXT_FIELD_NAMES)
    if note.get("kind", "handoff") not in ("handoff", "rollover"):
        return None
    if (
        not has_texts
        or not all(isinstance(note.get(field), int) for field in _NUMBER_FIELD_NAMES)
        or not is_valid_timestamp(note.get("at"))
    ):
        return None
    handoff = PendingHandoff(
        **{field: note[field] for field in PendingHandoff._fields if field in note}
    )
    has_valid_child = (
        is_session_id(handoff.child_id)
        and session_id_from_path(handoff.child_file) == handoff.child_id
    )
    if (
        not has_valid_child
        or not is_session_id(handoff.parent_id)
        or handoff.parent_id == handoff.child_id
    ):
        return None
    has_its_name = _note_stem(name) == f"{_NOTE_PREFIX}{handoff.pid}-{handoff.child_id}"
    if has_its_name and len(handoff.opening) <= MAX_OPENING_CHARACTERS:
        return handoff
    return None
