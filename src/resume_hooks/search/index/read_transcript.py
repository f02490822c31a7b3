"""Transcripts as parts for the index, with what each word counts.

Only what was added, where a file only grew.

Read in this process, or in several if there is enough to read and they can be forked: what goes in
and comes out are plain values. A last line that is not whole is left for the next time, unless
nobody has been writing for a while.

Other processes never touch the index, and end with this one, however that ends. If one of them ends
early (out of memory, killed), or can't be started, its files are read here. Each has a pipe of its
own, which ends with it: in a ``ProcessPoolExecutor`` one that is killed while it answers leaves the
parent waiting for the rest for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from resume_hooks import clock
from resume_hooks.paths import open_regular
from resume_hooks.search.index.changes import ReadJob, ReadPosition
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.postings import Documents
from resume_hooks.search.index.tokenize import words_of
from resume_hooks.search.roles import ROLES
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import SEARCHED_BYTES, Line, bytes_before, read_lines
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.turns import opens_turn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MOST_CALLS = 50  # calls without an answer that are kept in mind until the next part
MOST_LABEL = 255  # characters of the name of a branch or of a tool that are kept; anything longer is not a name
SETTLED = 60.0  # seconds after which nobody is expected to finish a torn line
PART_BYTES = 2 * 1024 * 1024
"""Bytes of a part, but for its last line.

An appended line costs reading what its part holds so far.
"""

PART_WORDS = 200_000  # bytes of words of a part

_PRIME = 2**61 - 1
"""Ids are kept as what is left of them when divided by it: they fit a column, and differ if they differ anywhere."""


class Part(NamedTuple):
    """A part of a file, from ``start`` to byte ``end``: ``turns`` began before it, ``check`` is of its last bytes.

    ``documents`` are those of each level of the index. ``next`` is where to read on when the file
    has grown: the same start, unless the part is full. ``more`` says that the file goes on,
    ``torn`` that its last line may still be written. What was not seen is ``""``; ``parent``, the
    session that this one was made from, is told by the first part.
    """

    documents: dict[str, list[str]]
    start: ReadPosition
    next: ReadPosition
    end: int
    turns: int
    check: int
    more: bool
    torn: bool
    cwd: str
    entrypoint: str
    parent: str

    @property
    def number(self) -> int:
        """Which part of the file it is, from 0."""
        return self.start.part


def read_parts(job: ReadJob) -> Iterator[Part | None]:
    """The parts of a file from where it is read on.

    From its start if what was read is no longer there.

    None if it is gone.
    """
    try:
        with open_regular(job.path, follow=False, buffering=SEARCHED_BYTES) as stream:
            if _goes_on(stream, job):
                place = job.place
            else:
                place = ReadPosition()
            part = None
            while part is None or part.more:
                part = _read_part(stream, job, part.next if part else place)
                yield part
    except OSError:
        yield None


def _read_part(stream: BinaryIO, job: ReadJob, start: ReadPosition) -> Part:
    status = os.fstat(stream.fileno())
    settled = abs(time.time() - status.st_mtime) > SETTLED
    stream.seek(start.offset)
    reader = _RowReader(job, start)
    end, lines, full, torn = start.offset, start.lines, False, False
    for line in read_lines(stream, start.offset, start.lines):
        if full:
            break
        if (
            line.torn and records.parse(line.body) is None
        ):  # what is whole as JSON can't be the beginning of more
            torn = not settled
            break
        reader.take(line)
        end, lines = line.offset + len(line.raw), line.number + 1
        full = end - start.offset >= PART_BYTES or reader.size >= PART_WORDS
    else:
        line = None
    calls = tuple(reader.extractor.calls.items())[-MOST_CALLS:]
    copied = reader.copies.until, reader.copies.latest
    if full:
        following = ReadPosition(
            end, lines, reader.turn, start.part + 1, reader.time, calls, copied
        )
    else:
        following = start
    check = zlib.crc32(bytes_before(stream, end))
    more = full and line is not None
    if not (start.part or job.subagent):
        parent = read_parent(job.path)
    else:
        parent = None
    named = reader.cwd, reader.entrypoint, parent.session_id if parent else ""
    reader.documents.end_turn()
    return Part(
        reader.documents.told, start, following, end, reader.turn, check, more, torn, *named
    )


def _goes_on(stream: BinaryIO, job: ReadJob) -> bool:
    """Whether what was read is still there.

    A torn line that was taken in may have been finished since.
    """
    if not job.end:
        return False
    tail = bytes_before(stream, job.end)
    if zlib.crc32(tail) != job.check:
        return False
    return tail.endswith(b"\n") or stream.seek(0, os.SEEK_END) == job.end


class _RowReader:
    def __init__(self, job: ReadJob, start: ReadPosition) -> None:
        self.documents = Documents(job.file, start.part)
        self.size = 0
        self.turn = start.turns
        self.cwd = self.entrypoint = ""
        self.extractor = TextExtractor(dict(start.calls), subagent=job.subagent)
        from resume_hooks.transcripts.transcript import (
            Copies,
        )  # 4 ms, which a search does not need that reads nothing

        self.copies = Copies(*start.copied)
        self.time = start.time
        self._subagent = job.subagent
        self._name = os.path.basename(job.path)

    def take(self, line: Line) -> None:
        record = records.parse(
            line.raw if line.offset else line.body
        )  # a copy of each line would be felt
        if record is None or self.copies.holds(record):
            return
        self.turn += opens_turn(record, subagent=self._subagent)
        self.cwd = self.cwd or string(record, "cwd")
        self.entrypoint = self.entrypoint or string(record, "entrypoint")
        texts = self.extractor.texts_of(record)
        if texts is None:
            return
        stamp = clock.parse_timestamp(record.get("timestamp"))
        self.time = int(stamp.timestamp()) if stamp else self.time
        key, own = _ids(record)
        if texts.role == "title":  # kept once in a session, however often it is written
            key, own = (
                int.from_bytes(f"{self._name}\n{texts.prompt}".encode(errors="replace")) % _PRIME,
                0,
            )
        words = words_by_weight(texts)
        said_bytes = "".join(texts[2:6]).encode("utf-8", "replace")
        self.size += len(words)
        fields = {
            "line": line.number,
            "offset": line.offset,
            "length": len(line.raw),
            "time": max(0, self.time),
            "role": ROLES.index(texts.role),
            "key": key,
            "own": own,
            "digest": 0
            if record.get("truncated") is True
            else 1 + zlib.crc32(said_bytes),  # 0: contents taken out
            "tool": [name[:MOST_LABEL] for name in texts.tool.split(", ") if name],
            "branch": [branch[:MOST_LABEL]] if (branch := string(record, "gitBranch")) else [],
            "path": texts.files,
        }
        self.documents.add(self.turn, words.decode(), fields)


def words_by_weight(texts: RecordTexts) -> bytes:
    """The words of a record, each as often as it counts: what a person or the model said twice."""
    said = []
    for text in (texts.prompt, texts.reply):
        if text:
            said.append(words_of(text))
    done = []
    for text in (texts.input, texts.result):
        if text:
            done.append(words_of(text, numbered=True))
    return b" ".join([*said, *said, *done])


def _ids(record: Record) -> tuple[int, int]:
    """What a record and its copies have in common, and the id that a fork gave it in the place of that; 0 for none."""
    own, named = _uuid_number(string(record, "uuid")), _uuid_number(records.copied_from(record))
    if named and named != own:
        return (named, own)
    return (own, 0)


def _uuid_number(uuid: str) -> int:
    """A UUID as 61 bits; 0 for anything else."""
    digits = uuid.replace("-", "")
    try:
        if len(digits) == 32:
            return int(digits, 16) % _PRIME
        return 0
    except ValueError:
        return 0


PARALLEL = 24 * 1024 * 1024  # bytes to be read from which on starting other processes pays
MOST_PROCESSES = 8
PIPE = (
    1024 * 1024
)  # bytes that a pipe may hold: what a user may ask for, so that a process reads on while we write
AHEAD, AHEAD_BYTES = 64, 64 * 1024 * 1024
"""Parts that wait here for those of a file before them, and bytes of transcripts that they are of, about."""

PATIENCE = 1.0  # seconds that a process which was told to end is waited for

Sized = tuple[ReadJob, int]  # a job, and the bytes of it that are to be read

Result = tuple[ReadJob, Part | None]


def readings(jobs: Sequence[Sized]) -> Generator[Result]:
    """Each job with the parts that were read of it, None for a file that is gone."""
    processes = min(_cpus(), MOST_PROCESSES)
    # Beside other threads a process that was forked might wait for ever for what one of them had
    # locked.
    can_fork = (
        sys.platform.startswith("linux") and threading.current_thread() is threading.main_thread()
    )
    if processes == 1 or sum(size for _, size in jobs) < PARALLEL or not can_fork:
        processes = 0
    shares = _share_jobs(jobs, processes)
    workers: list[_Worker] = []
    try:
        with _undisturbed() if processes else contextlib.nullcontext():
            for number in range(processes):
                own = [job for (job, _), share in zip(jobs, shares, strict=True) if share == number]
                workers.append(_Worker(own, workers))
        for (job, _), share in zip(jobs, shares, strict=True):
            yield from _parts(job, share, workers)
    finally:
        for worker in workers:
            worker.end()


def _share_jobs(jobs: Sequence[Sized], processes: int) -> list[int]:
    """Which process reads each job: the one that has the least to read of those before it."""
    shares, loads = [], [0] * max(1, processes)
    for _, size in jobs:
        shares.append(loads.index(min(loads)))
        loads[shares[-1]] += size
    return shares


def _parts(job: ReadJob, share: int, workers: Sequence[_Worker]) -> Iterator[Result]:
    """What the process that has a ``share``, or this one, reads of a job."""
    while workers and _gather(workers, workers[share]):
        part = workers[share].answers.popleft()
        yield job, part
        if part is None or not part.more:
            return
        job = job._replace(place=part.next, end=part.end, check=part.check)
    yield from ((job, part) for part in read_parts(job))


def _gather(workers: Sequence[_Worker], wanted: _Worker) -> bool:
    """Wait until one of the processes has answered, and take what others say meanwhile.

    False if it ended instead.

    Files are of very unequal size: who had to wait for the reader of a large one would leave a
    processor idle.
    """
    from multiprocessing.connection import wait  # loaded with the first worker

    while not (wanted.answers or wanted.ended):
        sizes = []
        for worker in workers:
            for part in worker.answers:
                sizes.append(part.end - part.start.offset if part else 0)
        room = len(sizes) < AHEAD and sum(sizes) < AHEAD_BYTES
        for pipe in wait(
            [worker.pipe for worker in workers if not worker.ended and (room or worker is wanted)]
        ):
            next(worker for worker in workers if worker.pipe is pipe).receive()
    return bool(wanted.answers)


class _Worker:
    """Another process, which reads its jobs one after the other; ``ended`` if it does so no more."""

    def __init__(self, jobs: Sequence[ReadJob], others: Sequence[_Worker]) -> None:
        # Loading it takes 20 ms, which a small update would feel.
        from multiprocessing import get_context

        context = get_context("fork")
        self.answers = deque[Part | None]()
        self.pipe, answering = context.Pipe(duplex=False)
        _widen(answering)
        inherited = [worker.pipe for worker in (*others, self)]
        self._process = context.Process(
            target=_serve, args=(jobs, answering, inherited), daemon=True
        )
        self.ended = False
        try:
            self._process.start()
        except OSError:  # no room for one more
            self.ended = True
        answering.close()  # so that the pipe ends when the process does

    def receive(self) -> None:
        try:
            self.answers.append(self.pipe.recv())
        except (EOFError, OSError):
            self.ended = True

    def end(self) -> None:
        self.pipe.close()
        if self._process.pid is None:
            return
        self._process.terminate()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _widen(pipe: Connection) -> None:
    with contextlib.suppress(
        OSError, AttributeError, ImportError
    ):  # Linux alone can; without, it only waits
        import fcntl  # not on every platform

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let an interruption wait while processes are made: each must have made itself ready for one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(jobs: Sequence[ReadJob], answers: Connection, inherited: Sequence[Connection]) -> None:
    """The life of such a process: it leaves interruptions to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for pipe in inherited:
        pipe.close()  # so that only the parent can read what is answered
    with contextlib.suppress(OSError):  # the parent is gone
        for job in jobs:
            for part in read_parts(job):
                answers.send(part)
