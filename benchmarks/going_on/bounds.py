"""What bounds the decisions of an opening: the best choice that labels allow, and what a scorer finds without them.

``python -m benchmarks.going_on.bounds [all | tune final unseen]``. The scorer is linear in what is cheap to know of a
sentence; each session's are ranked by weights that were fit on the other sessions of all halves.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.going_on.judge import Row, keeps, rows_of
from benchmarks.going_on.truth import KINDS, Item, items, source_of
from benchmarks.going_on.ways import digest
from resume_hooks.reading.digest import as_text, build, prose, statements
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, entry
from resume_hooks.sessions.locate import session_file

SHOWN = 150
"""Characters that an opening shows of a decision."""

RIDGE = 30.0
"""What holds each weight to 0, in sentences."""

SAME = 0.6
"""The part of its words from which on a sentence says what one before it said."""

TELLING = 0.1
"""The part of the messages up to which a word's place tells where something is spoken of."""

_NAME = re.compile(r"[^\W\d_][\w./-]{3,}")
_COMMITS = re.compile(r"(?i)\b(?:let'?s|we(?:'ll| will| should| want| need)|i(?:'d like| want| think)|going with)\b")
_CORRECTS = re.compile(r"(?i)\A\W*(?:no|wrong|actually|not|wait|stop)\b|\b(?:instead|don'?t|rather)\b")
_DOES = re.compile(r"(?i)\A\W*(?:add|fix|chang|remov|renam|mov|updat|replac|switch|creat|us|mak|put|keep|drop|set)")


class Candidate(NamedTuple):
    """A sentence: the decisions that it holds, by their place among the labels, and what is known of it."""

    entry: DigestEntry
    holds: frozenset[int]
    known: tuple[float, ...] = ()

    @property
    def words(self) -> set[str]:
        """The words that an opening shows of it."""
        return {word.lower() for word in _NAME.findall(self.entry.text[:SHOWN])}


class Room(NamedTuple):
    """Characters of an opening, and whether other sections stand in it, too."""

    most: int = as_text.OPENING
    shared: bool = True


LARGER = 8_000
ROOMS = (Room(), Room(LARGER), Room(shared=False))


class Session(NamedTuple):
    """A labelled session, and every sentence that was said in it."""

    name: str
    items: Sequence[Item]
    said: Sequence[Candidate]

    @property
    def decisions(self) -> list[Item]:
        """What a reader labelled as decided."""
        return [item for item in self.items if item.kind == "decision"]

    def kept(self, entries: Iterable[DigestEntry], room: Room) -> Counter[str]:
        """The items by kind that an opening with these as its decisions keeps."""
        whole = digest(source_of(self.name))
        sections = whole.sections if room.shared else {}
        omitted = {name: count for name, count in whole.omitted.items() if name != "decisions"}
        changed = replace(whole, sections={**sections, "decisions": tuple(entries)}, omitted=omitted)
        rows = rows_of(as_text.opening(changed, source_of(self.name).stem, 3, room.most))
        return Counter(item.kind for item in self.items if keeps(item, rows))


def session_of(name: str, labelled: Sequence[Item]) -> Session:
    """A session with its candidates."""
    session = Session(name, labelled, ())
    return session._replace(said=list(_candidates(name, session.decisions)))


def holds(text: str, decisions: Sequence[Item]) -> frozenset[int]:
    """The decisions that a row with this text keeps."""
    row = Row("decided", prose.cut(text, SHOWN))
    return frozenset(at for at, item in enumerate(decisions) if keeps(item, [row]))


def _candidates(name: str, decisions: Sequence[Item]) -> Iterator[Candidate]:
    facts = LineageFacts()
    build._read(session_file(str(source_of(name))), facts, build.REACH)
    user = {said.place for said in (*facts.prompts.said, *facts.answers)}
    closing = {said.place for said in facts.closing}
    said = sorted((*facts.prompts.said, *facts.answers, *facts.said), key=lambda one: one.place.order)
    words = [{word.lower() for word in _NAME.findall(one.text)} for one in said]
    often = Counter(word for some in words for word in some)
    last = {word: at for at, some in enumerate(words) for word in some}
    after = sum(len(one.text) for one in said)
    for at, one in enumerate(said):
        after -= len(one.text)
        answer = next((other for other in said[at + 1 :] if other.place in user), None)
        until = answer.place.order if answer else math.inf
        changed = [change.path for change in facts.changes if one.place.order < change.place.order < until]
        names = {path.rpartition("/")[2].lower() for path in changed}
        of_message = (
            1, one.place in user, one.place in closing, one.correcting, math.log1p(after / 1_000), bool(changed),
            answer is not None and statements._agrees(answer.text),
            any(summary.order > one.place.order for summary in facts.summaries),
        )  # fmt: skip
        sentences = list(prose.sentences(statements._both_ends(one.text) if one.place in user else one.text))
        for place, text in enumerate(sentences):
            here = {word.lower() for word in _NAME.findall(text)} & {*last}
            rare = [word for word in here if often[word] <= max(3, TELLING * len(said))]
            of_sentence = (
                math.log1p(place), math.log1p(len(sentences)), len(text) < 40, len(text) >= 80, "`" in text,
                prose.decides(text), statements.demands(text), prose.is_question(text), prose.is_announcement(text),
                *(pattern.search(text) is not None for pattern in (_COMMITS, _CORRECTS, _DOES)),
                bool(names & here), sum(last[word] > at for word in rare) / max(1, len(rare)),
            )  # fmt: skip
            yield Candidate(entry(text, one.place), holds(text, decisions), tuple(map(float, of_message + of_sentence)))


def weights(sessions: Iterable[Session]) -> list[float]:
    """The weights by which a linear scorer tells best, in squares, whether a sentence holds a decision."""
    rows = [(one.known, float(bool(one.holds))) for session in sessions for one in session.said]
    size = len(rows[0][0])
    matrix = [
        [sum(known[a] * known[b] for known, _ in rows) + RIDGE * (a == b) for b in range(size)] for a in range(size)
    ]
    result = [sum(known[a] * held for known, held in rows) for a in range(size)]
    for a in range(size):  # the matrix is positive, so that no row has to be swapped
        for below in range(a + 1, size):
            part = matrix[below][a] / matrix[a][a]
            matrix[below] = [x - part * y for x, y in zip(matrix[below], matrix[a], strict=True)]
            result[below] -= part * result[a]
    for a in reversed(range(size)):
        known = sum(matrix[a][b] * result[b] for b in range(a + 1, size))
        result[a] = (result[a] - known) / matrix[a][a]
    return result


def best(session: Session, by: Sequence[float], others: Sequence[Row]) -> list[DigestEntry]:
    """The sentences by their score, but what one before them or one of the ``others`` says."""
    scored = sorted(session.said, key=lambda one: -sum(x * y for x, y in zip(one.known, by, strict=True)))
    found: list[Candidate] = []
    for one in scored[: 4 * as_text.OPENING // SHOWN]:
        same = (len(one.words & other.words) >= SAME * max(1, min(len(one.words), len(other.words))) for other in found)
        if not any(same) and not any(one.entry.text[:SHOWN] in row.text for row in others):
            found.append(one)
    return [one.entry for one in found]


def oracle(found: Sequence[Candidate]) -> list[DigestEntry]:
    """The sentences by how many decisions they add for a character."""
    chosen: list[DigestEntry] = []
    known: set[int] = set()
    while best := max((one for one in found if one.holds - known), key=lambda one: _gain(one, known), default=None):
        chosen.append(best.entry)
        known |= best.holds
    return chosen


def _gain(one: Candidate, known: set[int]) -> float:
    return len(one.holds - known) / (min(SHOWN, len(one.entry.text)) + len(f"{as_text.BULLET} (:1000)"))


def table(*halves: str) -> Iterator[str]:
    """How many items of the halves an opening keeps by each choice of its decisions."""
    found: dict[str, list[Item]] = {}
    for item in items("all"):
        found.setdefault(item.session, []).append(item)
    sessions = [session_of(name, labelled) for name, labelled in found.items()]
    asked = {item.session for half in halves for item in items(half)}
    kept: dict[tuple[str, Room], Counter[str]] = {}
    for session in (one for one in sessions if one.name in asked):
        by = weights(one for one in sessions if one is not session)
        for room in ROOMS:
            for choice, entries in _choices(session, by, room).items():
                kept.setdefault((choice, room), Counter()).update(session.kept(entries, room))
    counts = Counter(item.kind for name in asked for item in found[name])
    heads = [*(f"{kind}s of {counts[kind]}" for kind in KINDS), f"decisions in {LARGER:,} characters", "alone"]
    yield f"| choice | {' | '.join(heads)} |"
    yield f"|{'---|' * (1 + len(heads))}"
    for choice in dict.fromkeys(choice for choice, _ in kept):
        here, *others = (kept[choice, room] for room in ROOMS)
        cells = [*(here[kind] for kind in KINDS), *(one["decision"] for one in others)]
        yield f"| {choice} | {' | '.join(map(str, cells))} |"


def _choices(session: Session, by: Sequence[float], room: Room) -> Mapping[str, Sequence[DigestEntry]]:
    whole = digest(source_of(session.name))
    rows = rows_of(as_text.opening(whole, source_of(session.name).stem, 3, room.most)) if room.shared else []
    own = [Candidate(one, holds(one.text, session.decisions)) for one in whole.of("decisions")]
    return {
        "as it is": [one.entry for one in own],
        "a scorer, fit on the other sessions": best(session, by, [row for row in rows if row.section[:7] != "decided"]),
        "the best of the digest's own": oracle(own),
        "the best of all sentences": oracle(session.said),
    }


if __name__ == "__main__":
    print("\n".join(table(*(sys.argv[1:] or ["all"]))))
