"""The ways on, an adapter each: what they leave of a session. All run on a copy in a home of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.going_on.judge import Row, rows_of
from benchmarks.summaries import session_at
from resume_hooks import fork_session, rollover, trim
from resume_hooks.derive.compare import COMPACTION_ANSWER, KEPT_BY_COMPACTION, OUTPUT, SUMMARY, SUMMARY_READS, WRITE
from resume_hooks.derive.trim.options import TypedOptions, options_of
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.summary_check import checked, texts_in
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts import api_usage, records, tokens
from resume_hooks.transcripts.api_usage import FIVE_MINUTES
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import scan
from tests.builders import SESSION, ConfigHome

MODEL = ("rollover", "peer: aichat rollover")
"""Ways whose text a model writes: read from ``BENCH_SUMMARIES``."""

COMPACT = "compaction, recorded"
PEER_ANSWER = b"n\n"
PEER_REFERENCE = re.compile(r"\bline (\d+) of \S+\.jsonl\b")
"""What stands in the peer's copy for what it cut; lines count from 1."""
LIMIT = 120
"""Seconds that one way may take on one session."""

RATE = WRITE[FIVE_MINUTES]
Make = Callable[[Path], Path | None]


class Left(NamedTuple):
    """What is there after a way on: tokens of the first request, its text, the records it names, more rows.

    ``rows`` are looked at line by line, ``more`` are one read away; ``lies`` are sentences of a model that no record
    shows, and how many were looked up, None where no model wrote any.
    """

    tokens: int
    text: str = ""
    named: frozenset[int] = frozenset()
    rows: Sequence[Row] = ()
    more: Sequence[Row] = ()
    lies: tuple[int, int] | None = None


class Went(NamedTuple):
    """A way that was gone: what it left, None where nobody ran it; seconds, and input tokens of its first request."""

    way: str
    left: Left | None
    seconds: float = 0
    cost: float = 0


@cache
def digest(source: Path) -> Digest:
    """The digest of a session, in an empty config home."""
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "PATH": os.environ["PATH"]}
        return digest_of(session_file(str(source)), Where(environ))


def whole(source: Path) -> Sequence[Row]:
    """The full digest."""
    return rows_of(as_text.full(digest(source)))


def opening(source: Path) -> Sequence[Row]:
    """The tier that a child opens with."""
    return rows_of(as_text.opening(digest(source), source.stem, 3))


def lines(text: str) -> Sequence[Row]:
    """A text that is no digest."""
    return [Row("", row) for row in text.split("\n")]


def flat(text: str) -> str:
    """Text without the difference that white space makes."""
    return " ".join(text.split())


def left_of(path: Path, before: Left | None, parent: Path) -> Left:
    """What a file sends: its live chain. Tokens are the parent's less the characters that are gone."""
    transcript = scan(str(path))
    raw = path.read_bytes().split(b"\n")
    parsed = [record for node in transcript.chain if (record := records.parse(raw[node.number])) is not None]
    text = flat("\n".join(part for record in parsed for part in records.strings(record.get("message"))))
    marks = (record.get("original_index") for record in parsed if record.get("truncated"))
    named = frozenset(mark for mark in marks if isinstance(mark, int))
    count = tokens.context_of(transcript.chain).tokens
    if before is not None:
        old = scan(str(parent)).chain
        gone = sum(node.characters for node in old) - sum(node.characters for node in transcript.chain)
        count = max(0, before.tokens - round(gone / tokens.characters_per_token(old)))
    return Left(count, text, named)


def referring(left: Left) -> Left:
    """With the records that the peer's references lead to."""
    return left._replace(named=left.named | {int(line) - 1 for line in PEER_REFERENCE.findall(left.text)})


def fresh(path: Path, base: int, tier: Sequence[Row], more: Sequence[Row]) -> Left:
    """What a fresh child sends: what every session begins with, and its opening.

    ``tier`` are the lines that it opens with, which are looked at one by one; ``more`` are one read away.
    """
    said = round(sum(node.characters for node in scan(str(path)).chain) / tokens.CHARACTERS_PER_TOKEN)
    return left_of(path, None, path)._replace(tokens=base + said, rows=tier, more=more)


def gone(path: Path, source: Path) -> Iterator[Went]:
    """Each way on from the copy ``path`` of a session ``source``."""
    here = left_of(path, None, path)
    yield Went("go on", here, 0, here.tokens * RATE)
    for way, make, look in ways(path, source, here):
        begun = time.perf_counter()
        child = make(path)
        spent = time.perf_counter() - begun
        left = look(child) if child is not None else here  # a trim that would not pay makes nothing
        yield Went(way, left, spent, left.tokens * RATE)
        if child is not None:
            child.unlink()
    base = api_usage.base_of(HeadTail(str(path)), Where()).tokens
    for way, text in naive(path):
        size = base + round(len(text) / tokens.CHARACTERS_PER_TOKEN)
        yield Went(way, Left(size, flat(text), rows=lines(text)), 0, size * RATE)
    for way in MODEL:
        yield by_model(way, source, base, here.tokens)
    one = session_at(source)
    if one.summary:
        found = checked("\n".join(one.summary), one.said)
        left = Left(base + KEPT_BY_COMPACTION, rows=lines(summary(source)), lies=(found.marked, found.sentences))
        yield Went(COMPACT, left, 0, (left.tokens + here.tokens) * RATE + COMPACTION_ANSWER * OUTPUT)


def ways(path: Path, source: Path, here: Left) -> Iterator[tuple[str, Make, Callable[[Path], Left]]]:
    """The ways that make a child without a model: name, how, and what is left in it."""
    base = api_usage.base_of(HeadTail(str(path)), Where()).tokens

    def cut(child: Path) -> Left:
        return left_of(child, here, path)

    yield "trim", trimmed(), cut
    yield "trim, all it can", trimmed(threshold=["100"], keep_recent=0, assistant=1_000), cut
    if os.environ.get("BENCH_PEER"):
        yield "peer: aichat trim", theirs, lambda child: referring(cut(child))
    yield "fork", forked, cut
    yield "rollover --quick", rolled(""), lambda child: fresh(child, base, (), ())
    yield "handoff", rolled("go on"), lambda child: fresh(child, base, opening(source), whole(source))


def naive(path: Path) -> Iterator[tuple[str, str]]:
    """What anybody could paste, in the room of a digest's opening: its name, and the text."""
    parsed = [record for line in path.read_bytes().split(b"\n") if (record := records.parse(line)) is not None]
    prompts = [records.prompt_text(record) for record in parsed if records.is_prompt(record)]
    said = [records.text(one) for one in parsed if records.kind(one) == records.ASSISTANT or records.is_prompt(one)]
    yield "last 900 tokens of what was said", "\n".join(filter(None, said))[-as_text.OPENING :]
    yield "first prompt and last three", "\n".join([*prompts[:1], *prompts[1:][-3:]])


def by_model(way: str, source: Path, base: int, now: int) -> Went:
    """A way that a model's text is needed for: with our digest, where it is ours."""
    file = Path(os.environ.get("BENCH_SUMMARIES", os.devnull), way, f"{source.stem}.md")
    if not file.is_file():
        return Went(way, None)
    text = file.read_text(encoding="utf-8")
    found = checked(text, texts_in(str(source), source.stem))
    tier, more = (opening(source), whole(source)) if way == MODEL[0] else ((), ())
    size = base + round((len(text) + sum(len(row.text) for row in tier)) / tokens.CHARACTERS_PER_TOKEN)
    left = Left(size, flat(text), rows=[*lines(text), *tier], more=more, lies=(found.marked, found.sentences))
    return Went(way, left, 0, size * RATE + min(now, SUMMARY_READS) + SUMMARY * OUTPUT)


def summary(source: Path) -> str:
    """What the client's last compaction summary says, ``""`` where there is none."""
    for line in reversed(source.read_bytes().split(b"\n")):
        record = records.parse(line) if b'"isCompactSummary":true' in line else None
        if record is not None:
            return records.text(record)
    return ""


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
def laid(source: Path) -> Iterator[Path]:
    """A copy of a session in a home of its own, which is the one of this process meanwhile."""
    with tempfile.TemporaryDirectory() as root:
        config = Path(root, ".claude")
        home = ConfigHome(Path(root), config, {"HOME": root, "CLAUDE_CONFIG_DIR": str(config)})
        name = source.stem if is_session_id(source.stem) else SESSION
        path = home.project(HeadTail(str(source)).cwd or "/home/user/proj") / f"{name}.jsonl"
        shutil.copyfile(source, path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        before = {name: os.environ.get(name) for name in home.environ}
        os.environ.update(home.environ)
        try:
            yield path
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
