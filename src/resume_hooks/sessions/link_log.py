"""Store the links between sessions that are not recorded in any transcript.

The links are JSON lines in the file ``links.jsonl`` in our state folder. Lines are only appended.
This module needs only the standard library and Python 3.9, because the session hooks use it before
the engine is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from resume_hooks.paths import Where, is_session_id, make_private_folder, read_regular_file
from resume_hooks.storage.atomic import append_line

LINKS_FILE_NAME = "links.jsonl"
# Maximum size of the file in bytes, about 300,000 links. A larger file is ignored.
MAX_LINKS_FILE_BYTES = 64 * 1024 * 1024


class Link(NamedTuple):
    """A link: the session ``child_id`` was derived from the session ``parent_id`` at the time ``at``.

    ``kind`` is the operation, such as "clear", "handoff" or "rollover". If the parent is a
    colleague's session, ``owner`` is the colleague's login.
    """

    child_id: str
    parent_id: str
    kind: str
    at: str
    client_pid: Optional[int] = None
    owner: Optional[str] = None


def links_file(where: Where) -> str:
    """Return the path of the file with this config home's links."""
    return os.path.join(where.state, LINKS_FILE_NAME)


def record_link(link: Link, where: Where) -> None:
    """Append a link to ``links.jsonl``. Raise OSError if the state folder can't be written."""
    _append_row({key: value for key, value in link._asdict().items() if value is not None}, where)


def record_successor(child_id: str, successor_id: str, superseded_at: str, where: Where) -> None:
    """Append a row that marks an unopened child as superseded by its successor.

    Raise OSError if the state folder can't be written.
    """
    _append_row({"superseded_id": child_id, "by": successor_id, "at": superseded_at}, where)


def read_links(where: Where) -> list[Link]:
    """Return all valid links, oldest first. Skip incomplete and invalid rows."""
    return [link for row in _read_link_rows(where) if (link := _parse_link(row)) is not None]


def read_successors(where: Where) -> dict[str, str]:
    """Return the ids of superseded children, each mapped to the id of its successor."""
    pairs = []
    for row in _read_link_rows(where):
        pairs.append((row.get("superseded_id"), row.get("by")))
    return {
        str(child): str(by)
        for child, by in pairs
        if is_session_id(child) and is_session_id(by) and child != by
    }


def _append_row(row: dict[str, object], where: Where) -> None:
    path = links_file(where)
    make_private_folder(os.path.dirname(path), where)
    append_line(path, json.dumps(row, separators=(",", ":")).encode())


def _read_link_rows(where: Where) -> Iterator[dict[str, Any]]:
    try:
        lines = read_regular_file(links_file(where), MAX_LINKS_FILE_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(line) if line.strip() else None
            if isinstance(row, dict):
                yield row


def _parse_link(row: dict[str, Any]) -> Optional[Link]:
    child, parent, pid, owner = (
        row.get(key) for key in ("child_id", "parent_id", "client_pid", "owner")
    )
    if not is_session_id(child) or not is_session_id(parent) or child == parent:
        return None
    kind, at = str(row.get("kind", "")), str(row.get("at", ""))
    pid, owner = pid if isinstance(pid, int) else None, owner if isinstance(owner, str) else None
    return Link(str(child), str(parent), kind, at, pid, owner)
