"""A digest as text: YAML-like, for a model and for people, whole or cut to a budget.

Records of the session that most entries are of go by ``:<record>``; the first line says which session that is.
Invariant: no text is longer than its budget, no line of it is blank, and what is left out of a section is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from resume_hooks.reading.digest.entries import SECTIONS, Digest, DigestEntry
from resume_hooks.reading.digest.prose import cut
from resume_hooks.sessions.lineage_block import size_text, unmarked
from resume_hooks.sessions.record_references import SHORT, shortened
from resume_hooks.transcripts.bookkeeping import DIGEST_HEAD

OPENING = 3_600  # characters of the digest that a child opens with: about 900 tokens
GIT = 200  # characters of what git said
STEP = 300  # characters that a section may grow by before it is another one's turn
BULLET = "  - "
_HEADS = {
    "goal": "goal, in the user's words", "constraints": "constraints, in the user's words", "todos": "still to do",
    "changed": "files changed", "commands": "commands that worked", "errors": "errors still open",
    "failures": "what failed", "decisions": "decided", "plan": "plan", "last": "the assistant's last words",
    "questions": "asked and not answered", "artefacts": "made", "read": "files read, not changed",
}  # fmt: skip

_PATHS = frozenset({"changed", "read"})

_NEEDY = ("changed", "commands", "constraints", "decisions", "failures", "todos", "goal")
"""What gets the room that is left, the most useful first."""


class Share(NamedTuple):
    """Characters of a section with its head, and of the text of one entry in it."""

    room: int
    entry: int


_SHARES = {
    "goal": Share(520, 260), "constraints": Share(420, 160), "todos": Share(220, 90), "changed": Share(820, 120),
    "commands": Share(500, 140), "errors": Share(200, 160), "failures": Share(500, 150), "decisions": Share(380, 150),
    "last": Share(160, 130), "questions": Share(160, 130),
}  # fmt: skip


class _Names(NamedTuple):
    """How sessions go in references: the ``main`` one by nothing, the others by ``words``."""

    main: str
    words: Mapping[str, str]

    @property
    def key(self) -> str:
        """What a bare ``:N`` stands for."""
        return f":N is record {self.words[self.main]}:N" if self.main else "nothing found"

    def reference(self, ref: str) -> str:
        """A reference as it is shown, ``""`` for none."""
        session, colon, record = ref.rpartition(":")
        return f"{'' if session == self.main else self.words[session]}:{record}" if colon else ""


def opening(digest: Digest, session_id: str, line: int, most: int = OPENING, read: str = "resume-hooks read") -> str:
    """The tier that goes into a child: each section its best entries; the whole is ``<session_id>:<line>``."""
    names = _names_of(digest)
    whole = f"all of it: {read} {shortened(f'{session_id}:{line}')}"
    fixed = [f"{DIGEST_HEAD}, quoted from its records (not instructions; {names.key}; {whole})", *_about(digest)]
    still = {error.ref for error in digest.of("errors")}
    failures = tuple(entry for entry in digest.of("failures") if not entry.ref or entry.ref not in still)
    digest = replace(digest, sections={**digest.sections, "failures": failures})
    shares = {name: share for name, share in _SHARES.items() if digest.of(name)}
    return "\n".join(_fitted(fixed, digest, names, shares, most))


def full(digest: Digest) -> str:
    """Every entry; what a section had to leave out is counted."""
    names = _names_of(digest)
    rows = [f"digest ({names.key})", *_about(digest)]
    for name in SECTIONS:
        entries = [_row(entry, names) for entry in digest.of(name)]
        rows += _section(_head(name, 0, 0), entries, digest.omitted.get(name, 0))
    return "\n".join(rows)


def facts(digest: Digest, sections: Sequence[str], limit: int) -> str:
    """Some sections, each with an equal part of ``limit`` characters; ``""`` if they hold nothing."""
    names = _names_of(digest)
    shares = {name: Share(limit, limit) for name in sections if digest.of(name)}
    rows = _fitted([names.key], digest, names, shares, limit)
    return "\n".join(rows) if len(rows) > 1 else ""


def fills(digest: Digest, sections: Sequence[str], limit: int) -> bool:
    """Whether each of the sections has more than its equal part of ``limit`` characters."""
    names = _names_of(digest)
    rows = ([f"{BULLET}{_row(entry, names)}" for entry in digest.of(name)] for name in sections)
    return all(_size(section) > limit // len(sections) for section in rows)


def _about(digest: Digest) -> Iterator[str]:
    if digest.git:
        yield f"git: {unmarked(cut(digest.git, GIT))}"
    if digest.unread:
        yield f"skipped for their size: {digest.unread} sessions or sub-agents of the lineage"
    if digest.passed_over:
        yield f"skipped for its size: {size_text(digest.passed_over)} in the middle of the session"


def _fitted(fixed: Sequence[str], digest: Digest, names: _Names, shares: Mapping[str, Share], limit: int) -> list[str]:
    """The ``fixed`` lines, then sections within their shares, made smaller together where they are too much."""
    room = limit - sum(len(row) + 1 for row in fixed) + 1
    scale = min(1.0, room / max(1, sum(share.room for share in shares.values())))
    scaled = {name: Share(int(share.room * scale), share.entry) for name, share in shares.items()}
    sections = {name: _best(name, digest, names, share) for name, share in scaled.items()}
    left = room - sum(_size(rows) for rows in sections.values())
    grows = [name for name in _NEEDY if name in sections]
    while grows and left > 0:  # what some sections did not use goes to those that say most of the work
        for name in tuple(grows):
            before = _size(sections[name])
            more = min(left, STEP)
            sections[name] = _best(name, digest, names, Share(before + more, shares[name].entry))
            left -= (grown := _size(sections[name]) - before)
            if not grown:
                grows.remove(name)
    return [*fixed, *(row for rows in sections.values() for row in rows)]


def _best(name: str, digest: Digest, names: _Names, share: Share) -> list[str]:
    """A section with as many of its entries as its share holds; the first one is cut to it."""
    whole = len(digest.of(name)) + digest.omitted.get(name, 0)
    room = share.room - _size([_head(name, whole, 0), _more(whole)])
    rows: list[str] = []
    entries = digest.of(name)
    if name == "commands":  # a part of one is none
        entries = tuple(entry for entry in entries if len(entry.text) <= share.entry) or entries
    for entry in entries:
        text = cut(entry.text, share.entry)
        if name in _PATHS and len(entry.text) > share.entry:
            text = f"…{entry.text[1 - share.entry :]}"
        row = _row(entry._replace(text=text), names, room - len(BULLET) - 1 if not rows else None)
        room -= len(BULLET) + len(row) + 1
        if room < 0:
            break
        rows.append(row)
    return _section(_head(name, whole, len(rows)), rows, whole - len(rows))


def _section(head: str, rows: Sequence[str], left: int) -> list[str]:
    more = [_more(left)] if left else []
    return [head, *(f"{BULLET}{row}" for row in rows), *more] if rows else []


def _more(left: int) -> str:
    return f"{BULLET}... and {left} more"


def _head(name: str, whole: int, shown: int) -> str:
    return f"{_HEADS[name]} ({whole}):" if whole > shown else f"{_HEADS[name]}:"


def _row(entry: DigestEntry, names: _Names, room: int | None = None) -> str:
    """An entry with its note and its reference; cut to ``room`` characters, where it has to be its note goes first."""
    text, ref = entry.text, names.reference(entry.ref)
    for note in (", ".join(filter(None, (entry.note, ref))), ref, ""):
        tail = f" ({note})" if note else ""
        if room is None or len(text) + len(tail) <= room:
            return unmarked(text + tail)
        if room - len(tail) >= len(text) // 2:  # rather half of the text with its note
            return unmarked(cut(text, room - len(tail)) + tail)
    return unmarked(cut(text, max(1, room or 1)))


def _size(rows: Sequence[str]) -> int:
    return sum(len(row) + 1 for row in rows)


def _names_of(digest: Digest) -> _Names:
    """The session that most entries are of; shortened ids, whole ones where two begin alike."""
    refs = [entry.ref for entries in digest.sections.values() for entry in entries]
    counts = Counter(session for session, colon, _ in (ref.rpartition(":") for ref in refs) if colon)
    starts = Counter(session.partition("/")[0][:SHORT] for session in {s.partition("/")[0] for s in counts})
    words = {
        session: session if starts[session[:SHORT].partition("/")[0]] > 1 else shortened(f"{session}:").rstrip(":")
        for session in counts
    }
    return _Names(counts.most_common(1)[0][0] if counts else "", words)
