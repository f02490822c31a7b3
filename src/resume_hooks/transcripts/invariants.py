"""The invariants that a written session must hold, tested on the file as read back (docs/transcripts.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.errors import CheckFailed
from resume_hooks.transcripts.chain import Node
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import Observer, scan
from resume_hooks.transcripts.write_scan import needs_mending


class Check(NamedTuple):
    """One invariant by name, and whether it holds."""

    name: str
    ok: bool


def check_session(path: str, session_id: str, observers: Sequence[Observer] = ()) -> list[Check]:
    """Every general invariant of a session file; what a verb adds for itself is checked by the verb.

    ``observers`` see the records as they are read back.
    """
    contents = _Contents(session_id)
    transcript = scan(path, observers=(contents, *observers))
    nodes = transcript.nodes
    lenient = any(node.number in transcript.lenient_lines for node in nodes)
    return [
        Check("every line is a whole JSON object", not (transcript.bad_lines or transcript.torn or lenient)),
        Check("one root, every parent stands before its child", _is_tree(nodes)),
        Check(
            "the live chain is the whole file in order", [n.uuid for n in transcript.chain] == [n.uuid for n in nodes]
        ),
        Check("record ids are unique", len({node.uuid for node in nodes}) == len(nodes)),
        Check("instants never go back, and the last is the latest alone", _in_order(nodes)),
        Check("the conversation starts with a user", _starts_with_user(nodes)),
        Check("no message has a form that is refused", contents.sound),
        Check("every tool call is answered once", _is_paired(nodes)),
        Check("every record carries the session's id", contents.own),
        Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
    ]


class _Contents:
    """What the records say, taken in as they are read."""

    def __init__(self, session_id: str) -> None:
        self.sound = True
        self.own = True
        self._session_id = session_id

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        self.own = self.own and record.get("sessionId", self._session_id) == self._session_id
        self.sound = self.sound and not (node is not None and node.spoken and needs_mending(record))


def require(checks: list[Check], path: str) -> None:
    """Raise CheckFailed naming every check that did not hold."""
    broken = [check.name for check in checks if not check.ok]
    if broken:
        raise CheckFailed(
            f"The new session {os.path.basename(path)} was not kept: {'; '.join(broken)}",
            "Nothing was changed. Please report this with the output of: resume-hooks doctor",
        )


def _is_tree(nodes: list[Node]) -> bool:
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        root = node.parent is None
        if root != (index == 0) or not (root or node.parent in seen):
            return False
        seen.add(node.uuid)
    return bool(nodes)


def _in_order(nodes: list[Node]) -> bool:
    times = [node.time_ms for node in nodes]
    known = [time for time in times if time is not None]
    return len(known) == len(nodes) and known == sorted(known) and known[-1:] != known[-2:-1]


def _starts_with_user(nodes: list[Node]) -> bool:
    conversation = [node for node in nodes if node.kind in {"user", "assistant"}]
    return bool(conversation) and conversation[0].kind == "user" and not conversation[0].results


def _is_paired(nodes: list[Node]) -> bool:
    calls = [call for node in nodes for call in node.calls]
    results = [call for node in nodes for call in node.results]
    return sorted(calls) == sorted(results) and len(set(calls)) == len(calls)
