"""Names of derived sessions: the root's title, what was done, a counter; unique within the project folder."""

from __future__ import annotations

import json
import os

from resume_hooks.glance import REACH, TITLE_LENGTH, one_line
from resume_hooks.store import sessions_in

_MARK = b'{"continue_metadata"', b'{"trim_metadata"'


def child_title(root_title: str, kind: str, folder: str) -> str:
    """``<root title> · handoff 2``: at most 80 characters, and the first counter that no session there has."""
    suffix_room = len(f" · {kind} 1000")
    stem = f"{one_line(root_title, TITLE_LENGTH - suffix_room)} · {kind} "
    taken = _counters(folder, f'"customTitle":{json.dumps(stem, ensure_ascii=False)}'.encode("utf-8", "replace")[:-1])
    return f"{stem}{max(taken, default=0) + 1}"


def _counters(folder: str, marker: bytes) -> set[int]:
    """The numbers after ``marker`` in the derived sessions of a folder; of others only the first bytes are read."""
    taken = set()
    for session in sessions_in(folder):
        try:
            with open(session.path, "rb") as stream:
                if not stream.read(len(_MARK[0])).startswith(_MARK):
                    continue
                stream.seek(-min(session.size, REACH), os.SEEK_END)
                tail = stream.read()
        except OSError:
            continue  # gone since the folder was listed: its name is free
        start = tail.rfind(marker)
        digits = tail[start + len(marker) :].split(b'"', 1)[0] if start >= 0 else b""
        if digits.isdigit():
            taken.add(int(digits))
    return taken
