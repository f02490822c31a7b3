"""The handoff that waits: what a client handed off last, for its next ``/clear`` or for whoever starts here next.

Invariant: one handoff a client process, used up once, and only while nobody has opened its child.
What a note says is believed only where it fits the client, the folder and the child as it lies
there. Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, timezone
from typing import Any, Dict, NamedTuple, Optional

from resume_hooks.hooks import hook_state
from resume_hooks.hooks.hook_state import is_instant
from resume_hooks.paths import (
    canonical,
    is_session_file,
    is_session_id,
    open_regular,
    session_id_of,
)
from resume_hooks.system.processes import start_of_process

MOST = 38_000  # characters of an opening that waits: what ``start_parts`` delivers, with our own words before it
FRESH = 3_600  # seconds for which a handoff is worth a word to whoever starts in its folder
SKEW = 5  # seconds that a clock may step back without a handoff counting as one from the future

_TEXTS = ("started", "parent_id", "child_id", "child_file", "opening")
_WHOLE = ("pid", "child_size")
TAIL = 262_144  # bytes at the end of a session in which its last answers are looked for

_PREFIX = "handoff-"
_TOLD = ".told"
_UNTOLD = ".json"


class PendingHandoff(NamedTuple):
    """A child that waits: who made it (``pid``, since ``started``), out of which session, and what it opens with.

    ``child_size`` are its bytes as it was born: more means that somebody opened it. ``at`` is in
    seconds since the epoch. ``opening`` has at most ``MOST`` characters. ``kind`` is that of the
    child, a handoff or a rollover.
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
    def waits(self) -> bool:
        """Whether it is young enough, and nobody opened the child since it was born."""
        try:
            untouched = (
                is_session_file(self.child_file)
                and os.path.getsize(self.child_file) == self.child_size
            )
        except OSError:
            return False
        return untouched and -SKEW <= time.time() - self.at <= hook_state.KEPT

    def is_of(self, pid: int) -> bool:
        """Whether that process left it.

        A number that went to another process since is somebody else's.
        """
        now = start_of_process(pid)
        return self.pid == pid and (not now or not self.started or now == self.started)

    def lies_in(self, folder: str) -> bool:
        """Whether its child lies in a project folder."""
        return canonical(os.path.dirname(self.child_file)) == canonical(folder)


def leave_handoff(handoff: PendingHandoff) -> None:
    """Let a handoff wait, in place of the client's last one. OSError where that can't be done."""
    hook_state.sweep_notes(_PREFIX)
    name = f"{_PREFIX}{handoff.pid}-{handoff.child_id}{_UNTOLD}"
    hook_state.write_note(name, handoff._asdict())
    for other in hook_state.note_names(f"{_PREFIX}{handoff.pid}-"):
        if other != name:
            hook_state.consume_note(other)


def take_handoff(pid: int, folder: str, cleared: Optional[str]) -> Optional[PendingHandoff]:
    """The handoff of the session that this client just ``cleared`` (None: not known), used up.

    None for none.

    One of another session stays: the client may go back there.
    """
    for name in hook_state.note_names(f"{_PREFIX}{pid}-"):
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if handoff is None or cleared not in {None, handoff.parent_id}:
            continue
        if handoff.is_of(pid) and handoff.lies_in(folder):
            waits = handoff.waits
            if _consume_handoff_note(name) and waits:
                return handoff
            return None
    return None


def is_outdated(handoff: PendingHandoff) -> bool:
    """Whether the model answered in the session after it was handed off, as far as the end of its file tells."""
    path = os.path.join(os.path.dirname(handoff.child_file), f"{handoff.parent_id}.jsonl")
    try:
        with open_regular(path, follow=False) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL))
            rows = stream.read(TAIL).split(b"\n")
    except OSError:
        return False
    made = datetime.fromtimestamp(handoff.at, timezone.utc).isoformat(timespec="milliseconds")[:-6]
    return any(_answered_at(row) > made for row in rows if b'"assistant"' in row)


def _answered_at(row: bytes) -> str:
    """The instant of an assistant record, ``""`` for anything else."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(row)
        if (
            isinstance(record, dict)
            and record.get("type") == "assistant"
            and record.get("isSidechain") is not True
        ):
            return str(record.get("timestamp", ""))
    return ""


def retire_handoffs_of(parent_id: str) -> None:
    """Use up the handoffs of a session that was left in another way since."""
    for name in hook_state.note_names(_PREFIX):
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if handoff is not None and handoff.parent_id == parent_id:
            _consume_handoff_note(name)


def drop_handoff_to(child_id: str) -> None:
    """Use up the handoff whose child somebody opened."""
    for name in hook_state.note_names(_PREFIX):
        if _stem_of_note(name).endswith(f"-{child_id}"):
            _consume_handoff_note(name)


def handoff_to_announce(folder: str) -> Optional[PendingHandoff]:
    """The newest handoff of a folder to announce to its next user, once; it goes on waiting.

    Notes that have nothing to tell any more get the name of a told one, so that no later start
    looks at them.
    """
    due = []
    for name in hook_state.note_names(_PREFIX):
        if not name.endswith(_UNTOLD):
            continue
        handoff = _parse_handoff_note(hook_state.read_note(name), name)
        if handoff is None or not handoff.waits or time.time() - handoff.at > FRESH:
            _mark_announced(name)
        elif handoff.lies_in(folder) and _mark_announced(name):
            due.append(handoff)
    return max(due, key=lambda handoff: handoff.at, default=None)


def _mark_announced(name: str) -> bool:
    """Of several clients that start at once, one gets to tell."""
    with contextlib.suppress(OSError):
        os.rename(hook_state.note_path(name), hook_state.note_path(_stem_of_note(name) + _TOLD))
        return True
    return False


def _consume_handoff_note(name: str) -> bool:
    """Of several takers one gets it, also while a client that starts gives it its other name."""
    return any(hook_state.consume_note(_stem_of_note(name) + ending) for ending in (_UNTOLD, _TOLD))


def _stem_of_note(name: str) -> str:
    return os.path.splitext(name)[0]


def _parse_handoff_note(found: Dict[str, Any], name: str) -> Optional[PendingHandoff]:
    """A note as a handoff; None if we did not write it, or if its contents don't match its name."""
    texts = all(isinstance(found.get(field), str) for field in _TEXTS)
    if found.get("kind", "handoff") not in ("handoff", "rollover"):
        return None
    if (
        not texts
        or not all(isinstance(found.get(field), int) for field in _WHOLE)
        or not is_instant(found.get("at"))
    ):
        return None
    handoff = PendingHandoff(
        **{field: found[field] for field in PendingHandoff._fields if field in found}
    )
    child = (
        is_session_id(handoff.child_id) and session_id_of(handoff.child_file) == handoff.child_id
    )
    if not child or not is_session_id(handoff.parent_id) or handoff.parent_id == handoff.child_id:
        return None
    named = _stem_of_note(name) == f"{_PREFIX}{handoff.pid}-{handoff.child_id}"
    if named and len(handoff.opening) <= MOST:
        return handoff
    return None
