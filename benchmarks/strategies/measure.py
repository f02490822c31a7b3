"""What each way on leaves of a session: tokens, what readers labelled, time, and what its first request costs.

One rule for all: an item survives where the text that would be sent holds it word for word, or a line of a digest
keeps it (``benchmarks/recovery/judge.py``); it is one read away where the text that would be sent names the record that
states it, or the full digest keeps it. Ours and the peer's run on copies in a home of their own.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.recovery.judge import Row, core, keeps
from benchmarks.recovery.measure import compaction, full, opening
from benchmarks.recovery.truth import KINDS, Item, items
from resume_hooks import fork_session, rollover, trim
from resume_hooks.derive.compare import COMPACTION_ANSWER, KEPT_BY_COMPACTION, SUMMARY, SUMMARY_READS
from resume_hooks.derive.cost import OUTPUT, WRITE
from resume_hooks.derive.trim.options import TypedOptions, options_of
from resume_hooks.errors import ResumeHooksError
from resume_hooks.transcripts import api_usage, records, tokens
from resume_hooks.transcripts.api_usage import FIVE_MINUTES
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import scan
from tests.builders import ConfigHome
from tests.needs import corpus

PEER_ANSWER = b"n\n"
COMPACT = "compact (estimate)"
LIMIT = 120
"""Seconds that one way may take on one session."""

Make = Callable[[Path], Path | None]


class Left(NamedTuple):
    """What is there after a way on: tokens of the first request, its text, the records it names, more rows."""

    tokens: int
    text: str
    named: frozenset[int]
    rows: Sequence[Row] = ()
    more: Sequence[Row] = ()


@dataclass
class Sums:
    """What a way came to over the sessions: shares of tokens, seconds, items kept and one read away by kind."""

    shares: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    near: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))


def flat(text: str) -> str:
    """Text without the difference that white space makes."""
    return " ".join(text.split())


def left_of(path: Path, before: Left | None, parent: Path) -> Left:
    """What a file sends: its live chain. Tokens are the parent's less the characters that are gone."""
    transcript = scan(str(path))
    lines = path.read_bytes().split(b"\n")
    parsed = [record for node in transcript.chain if (record := records.parse(lines[node.number])) is not None]
    text = flat("\n".join(part for record in parsed for part in records.strings(record.get("message"))))
    marks = (record.get("original_index") for record in parsed if record.get("truncated"))
    named = frozenset(mark for mark in marks if isinstance(mark, int))
    count = tokens.context_of(transcript.chain).tokens
    if before is not None:
        old = scan(str(parent)).chain
        gone = sum(node.characters for node in old) - sum(node.characters for node in transcript.chain)
        count = max(0, before.tokens - round(gone / tokens.characters_per_token(old)))
    return Left(count, text, named)


def fresh(path: Path, session: str, tier: Sequence[Row], whole: Sequence[Row]) -> Left:
    """What a fresh child sends: what every session begins with, and its opening."""
    base = api_usage.base_of(HeadTail(str(corpus() / f"{session}.jsonl"))).tokens
    found = left_of(path, None, path)
    said = round(sum(node.characters for node in scan(str(path)).chain) / tokens.CHARACTERS_PER_TOKEN)
    return found._replace(tokens=base + said, rows=tier, more=whole)


def survives(item: Item, left: Left) -> bool:
    """Whether the text that is sent holds an item."""
    wanted = core(item.text)[:200] if item.kind == "command" else flat(item.text)
    return wanted in left.text or (bool(left.rows) and keeps(item, left.rows))


def is_near(item: Item, left: Left) -> bool:
    """Whether one ``read`` brings it: of the record that a placeholder names, or of the digest."""
    return item.record in left.named or (bool(left.more) and keeps(item, left.more))


def table(half: str) -> list[str]:
    """The lines of the table over a half of the labelled sessions, or all."""
    found = items(half)
    sessions = list(dict.fromkeys(item.session for item in found))
    sums: dict[str, Sums] = {}
    for session in sessions:
        rows = [item for item in found if item.session == session]
        for way, left, seconds, cost, before in measured(session):
            add(sums.setdefault(way, Sums()), left, rows, (seconds, cost, left.tokens / before))
    heads = ["way", "n", "tokens left", "first request", "seconds", *(f"{kind}s" for kind in KINDS)]
    lines = [f"{half}: {len(sessions)} sessions, {len(found)} items", "", f"| {' | '.join(heads)} |"]
    lines.append(f"|{'---|' * len(heads)}")
    return [*lines, *(row(way, one) for way, one in sums.items()), "", *summaries(found)]


def add(sums: Sums, left: Left, rows: Sequence[Item], spent: tuple[float, float, float]) -> None:
    """Count a session."""
    seconds, cost, share = spent
    sums.seconds.append(seconds)
    sums.costs.append(cost)
    sums.shares.append(share)
    for item in rows:
        inside = survives(item, left)
        sums.of[item.kind] += 1
        sums.kept[item.kind] += inside
        sums.near[item.kind] += inside or is_near(item, left)


def row(way: str, sums: Sums) -> str:
    """A row: medians, and of each kind what is in context, and with one read."""
    cells = [way, str(len(sums.shares)), f"{100 * statistics.median(sums.shares):.0f} %"]
    cells += [f"{statistics.median(sums.costs):,.0f}", f"{statistics.median(sums.seconds):.2f}"]
    for kind in KINDS:
        if way == COMPACT:
            cells.append("below")  # what a summary keeps, a client's own tell
            continue
        count = sums.of[kind] or 1
        cells.append(f"{100 * sums.kept[kind] / count:.0f} / {100 * sums.near[kind] / count:.0f} %")
    return f"| {' | '.join(cells)} |"


def summaries(found: Sequence[Item]) -> list[str]:
    """What the client's own compactions kept, where there was one: by words, and as a reader finds it."""
    before = [item for item in found if item.in_summary is not None]
    told = []
    for kind in KINDS:
        rows = [item for item in before if item.kind == kind]
        words = sum(keeps(item, compaction(item.session)) for item in rows)
        told.append(
            f"{kind}s {words} by words, {sum(item.in_summary is True for item in rows)} by reading of {len(rows)}"
        )
    return [f"the client's own summaries: {'; '.join(told)}"]


def measured(session: str) -> Iterator[tuple[str, Left, float, float, int]]:
    """Each way on from a session: its name, what is left, seconds, cost of its first request, tokens before."""
    rate = WRITE[FIVE_MINUTES]
    with laid(session) as path:
        here = left_of(path, None, path)
        now = here.tokens
        yield "go on", here, 0, now * rate, now
        for way, make, look in ways(path, session, here):
            begun = time.perf_counter()
            child = make(path)
            spent = time.perf_counter() - begun
            left = look(child) if child is not None else here  # a trim that would not pay makes nothing
            yield way, left, spent, left.tokens * rate, now
            if child is not None:
                child.unlink()
        base = api_usage.base_of(HeadTail(str(path))).tokens
        digest = opening(session)
        opens = base + round(sum(len(line.text) for line in digest) / tokens.CHARACTERS_PER_TOKEN) + SUMMARY
        left = Left(opens, "", frozenset(), digest, full(session))
        yield "rollover (estimate)", left, 0, opens * rate + min(now, SUMMARY_READS) + SUMMARY * OUTPUT, now
        kept = Left(base + KEPT_BY_COMPACTION, "", frozenset())
        yield COMPACT, kept, 0, (kept.tokens + now) * rate + COMPACTION_ANSWER * OUTPUT, now


def ways(path: Path, session: str, here: Left) -> Iterator[tuple[str, Make, Callable[[Path], Left]]]:
    """The ways that make a child without a model: name, how, and what is left in it."""

    def cut(child: Path) -> Left:
        return left_of(child, here, path)

    yield "trim", trimmed(), cut
    yield "trim, all it can", trimmed(threshold=["100"], keep_recent=0, assistant=1_000), cut
    if os.environ.get("BENCH_PEER"):
        yield "peer: aichat trim", theirs, cut
    yield "fork", forked, cut
    yield "rollover --quick", rolled(""), lambda child: fresh(child, session, (), ())
    yield "handoff", rolled("go on"), lambda child: fresh(child, session, opening(session), full(session))


def trimmed(**how: object) -> Make:
    """A trim with options; None where it would not pay."""

    def make(path: Path) -> Path | None:
        made = trim(path, options_of(TypedOptions(**how)))  # type: ignore[arg-type]
        return Path(made.file) if made.written else None

    return make


def forked(path: Path) -> Path | None:
    """A fork of the whole live conversation."""
    try:
        return Path(fork_session(path).file)
    except ResumeHooksError:
        return None


def rolled(next_step: str) -> Make:
    """A fresh child."""
    return lambda path: Path(rollover(path, next_step=next_step).file)


def theirs(path: Path) -> Path | None:
    """The peer's trim to a new file, with its own defaults."""
    known = set(path.parent.iterdir())
    command = [os.environ["BENCH_PEER"], "trim", str(path), "--simple-ui"]
    subprocess.run(command, input=PEER_ANSWER, capture_output=True, check=False, timeout=LIMIT)
    made = [file for file in path.parent.iterdir() if file not in known and file.suffix == ".jsonl"]
    return made[0] if made else None


@contextmanager
def laid(session: str) -> Iterator[Path]:
    """A copy of a session in a home of its own, which is the one of this process meanwhile."""
    with tempfile.TemporaryDirectory() as root:
        config = Path(root, ".claude")
        home = ConfigHome(Path(root), config, {"HOME": root, "CLAUDE_CONFIG_DIR": str(config)})
        source = corpus() / f"{session}.jsonl"
        cwd = HeadTail(str(source)).cwd or "/home/user/proj"
        path = home.project(cwd) / source.name
        shutil.copyfile(source, path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        before = {name: os.environ.get(name) for name in home.environ}
        os.environ.update(home.environ)
        try:
            yield path
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
