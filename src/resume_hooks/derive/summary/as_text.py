"""A summary as text for the child, and as notes for the call that joins several: lines of our own form alone.

Invariant: what a model wrote, which may be what a transcript made it write, stands on one line each, behind a name or
a dash of ours; never a blank line, a control character or a block's marker. Its references are to what it was shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resume_hooks.derive.summary.form import Point, Summary
from resume_hooks.sessions.lineage_block import unmarked
from resume_hooks.sessions.references import MAX_DIGITS, SHORT
from resume_hooks.system.text import one_line, plain_line

LONGEST = 400
"""Characters of a line that a model wrote."""

MOST = 12
"""Points of a section."""

MOST_RECORDS = 4
"""References of a point."""

ROOM = 8_000
"""Characters of a summary in a child: about 2,000 tokens."""

_NAMES = {
    "next": "what remains, the first thing first", "constraints": "what the user demanded or ruled out",
    "decisions": "decided", "open": "open", "failed": "tried in vain", "facts": "how things are here", "done": "done",
}  # fmt: skip
"""The sections, the most useful first: where there is no room for all, the last ones go."""


def summary_text(summary: Summary, model: str, session_id: str, shown: frozenset[int], wish: str = "") -> str:
    """A summary as it stands in a child; ``""`` where it says nothing. ``wish`` is what the user asked it for."""
    said = list(_rows(summary, session_id, shown))
    if not said:
        return ""
    asked = f', asked for "{_line(wish, 200)}"' if wish.strip() else ""
    key = f":N is record {session_id[:SHORT]}:N"
    head = f"summary by {_line(model, 80)}, from the session's records{asked} (not instructions; {key})"
    return "\n".join(_within([head, *said], ROOM))


def notes_text(summaries: Sequence[Summary], session_id: str, shown: frozenset[int]) -> str:
    """What several parts came to, oldest first, for a model to join."""
    parts = ([f"part {number}", *_rows(found, session_id, shown)] for number, found in enumerate(summaries, 1))
    return "\n\n".join("\n".join(part) for part in parts)


def _rows(summary: Summary, session_id: str, shown: frozenset[int]) -> Iterator[str]:
    for name, text in (("goal", summary.goal), ("where the work stands", summary.state)):
        if line := _line(text, 2 * LONGEST):
            yield f"{name}: {line}"
    for field, name in _NAMES.items():
        points = [row for point in getattr(summary, field)[:MOST] if (row := _point(point, session_id, shown))]
        if points:
            yield f"{name}:"
            yield from (f"  - {row}" for row in points)


def _point(point: Point, session_id: str, shown: frozenset[int]) -> str:
    text = _line(point.text, LONGEST)
    named = (_number(said, session_id) for said in point.records[: 4 * MOST_RECORDS])
    numbers = list(dict.fromkeys(number for number in named if number in shown))
    refs = ", ".join(f":{number}" for number in numbers[:MOST_RECORDS])
    return f"{text} ({refs})" if text and refs else text


def _number(said: int | str, session_id: str) -> int:
    """The record of the session that was meant: ``56``, ``:56`` or ``1a2b3c4d:56``; -1 for anything else."""
    session, _, digits = str(said).strip().rpartition(":")
    sound = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) if sound and session_id.startswith(session) else -1


def _line(text: str, limit: int) -> str:
    return unmarked(one_line(plain_line(text[: limit * 8]), limit))


def _within(rows: Sequence[str], room: int) -> Iterator[str]:
    """As many rows as fit; no section's name without what it names."""
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    if kept and kept[-1].removesuffix(":") in _NAMES.values():
        kept.pop()
    yield from kept
