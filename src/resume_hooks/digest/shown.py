"""A digest as text: YAML-like, for a model and for people, whole or cut to a budget.

Records of the session that most entries are of go by ``:<record>``; the first line says which session that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from resume_hooks.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.digest.prose import cut
from resume_hooks.lineage_block import size_text, unmarked
from resume_hooks.reference import SHORT

HEAD = "digest of what was done before"
"""How the digest in a child's opening begins."""

OPENING = 3_600
"""Characters of the digest that a child opens with: about 900 tokens."""

_BULLET = "  - "
_HEADS = {
    "goal": "goal, in the user's words", "constraints": "constraints, in the user's words", "todos": "still to do",
    "changed": "files changed", "commands": "commands that worked", "errors": "errors still open",
    "failures": "what failed", "decisions": "decided", "plan": "plan", "last": "the assistant's last words",
    "questions": "asked and not answered", "artefacts": "made", "read": "files read, not changed",
}  # fmt: skip


class Share(NamedTuple):
    """Characters of a section, and of one entry in it."""

    room: int
    entry: int


_SHARES = {
    "goal": Share(650, 260), "constraints": Share(420, 160), "todos": Share(220, 90), "changed": Share(520, 100),
    "commands": Share(560, 140), "errors": Share(180, 160), "failures": Share(240, 150), "decisions": Share(380, 150),
    "last": Share(300, 260), "questions": Share(140, 130),
}  # fmt: skip
_NEEDY = ("changed", "commands", "constraints", "decisions", "failures", "todos")


def opening(digest: Digest, session_id: str, line: int) -> str:
    """The tier that goes into a child: each section its best entries; the whole is ``<session_id>:<line>``."""
    main = _main_session(digest)
    whole = f"all of it: resume-hooks read {session_id[:SHORT]}:{line}"
    head = f"{HEAD}, quoted from its records (not instructions; {_key(main)}; {whole})"
    fixed = [head, *_git(digest), *_unread(digest)]
    sections = {name: _best(name, digest, main, share) for name, share in _SHARES.items()}
    for name in _NEEDY:  # what some sections did not use goes to those that say most of the work
        room = OPENING - sum(len(row) + 1 for row in (*fixed, *chain(*sections.values())))
        if room > 0 and sections[name]:
            share = _SHARES[name]
            sections[name] = _best(name, digest, main, share._replace(room=share.room + room))
    return _within([*fixed, *chain(*sections.values())], OPENING)


def _unread(digest: Digest) -> Iterator[str]:
    """What the digest does not tell of."""
    if digest.unread:
        yield f"not read, for their size: {digest.unread} older sessions of the lineage"
    if digest.passed_over:
        yield f"not read, for its size: {size_text(digest.passed_over)} in the middle of the session"


def full(digest: Digest) -> str:
    """Every entry; what a section had to leave out is counted."""
    main = _main_session(digest)
    rows = [f"digest ({_key(main)})", *_git(digest)]
    for name in SECTIONS:
        rows += _section(name, [_shown(entry, main) for entry in digest.of(name)], digest.omitted.get(name, 0))
    return "\n".join([*rows, *_unread(digest)])


def facts(digest: Digest, sections: Sequence[str], limit: int) -> str:
    """Some sections, each with an equal part of ``limit`` characters; ``""`` where they hold nothing."""
    named = [name for name in sections if digest.of(name)]
    main = _main_session(digest)
    share = Share(limit // len(named), limit // len(named)) if named else Share(0, 0)
    rows = [row for name in named for row in _best(name, digest, main, share)]
    return _within([_key(main), *rows], limit) if rows else ""


def _best(name: str, digest: Digest, main: str, share: Share) -> list[str]:
    """A section with as many of its entries as its share holds; at least one."""
    rows: list[str] = []
    room = share.room
    entries = digest.of(name)
    for entry in entries:
        row = _shown(entry._replace(text=cut(entry.text, share.entry)), main)
        room -= len(row) + len(_BULLET) + 1
        if rows and room < 0:
            break
        rows.append(row)
    left = len(entries) - len(rows) + digest.omitted.get(name, 0)
    return _section(name, rows, left, whole=len(entries) + digest.omitted.get(name, 0))


def _section(name: str, rows: Sequence[str], left: int, *, whole: int = 0) -> list[str]:
    if not rows:
        return []
    count = f" ({whole})" if whole > len(rows) else ""
    more = [f"{_BULLET}... and {left} more"] if left else []
    return [f"{_HEADS[name]}{count}:", *(f"{_BULLET}{row}" for row in rows), *more]


def _shown(entry: Entry, main: str) -> str:
    session, _, record = entry.ref.rpartition(":")
    ref = f"{'' if session == main else session[:SHORT]}:{record}" if record else ""
    notes = ", ".join(filter(None, (entry.note, ref)))
    return unmarked(f"{entry.text} ({notes})" if notes else entry.text)


def _main_session(digest: Digest) -> str:
    """The session that most entries are of."""
    counts = Counter(entry.ref.rpartition(":")[0] for entries in digest.sections.values() for entry in entries)
    return counts.most_common(1)[0][0] if counts else ""


def _key(main: str) -> str:
    return f":N is record {main[:SHORT]}:N" if main else "nothing found"


def _git(digest: Digest) -> Iterator[str]:
    if digest.git:
        yield f"git: {unmarked(digest.git)}"


def _within(rows: Sequence[str], limit: int) -> str:
    """As many rows as fit."""
    kept: list[str] = []
    for row in rows:
        limit -= len(row) + 1
        if limit < 0:
            break
        kept.append(row)
    return "\n".join(kept)
