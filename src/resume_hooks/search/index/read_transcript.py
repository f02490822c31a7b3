"""Read transcripts in parts, and weight their words for the index.

If a file has only grown, only its last part and the new bytes are read. An unfinished last line is
left for the next update, unless the file has been unchanged for a while.

If there is enough to read and the process can fork, several worker processes read the files and
send plain values to this process. Otherwise this process reads the files.

A worker never touches the index, and exits when this process exits. If a worker cannot start, or
exits early (because it ran out of memory or was killed), this process reads its files. Each worker
has its own pipe, which closes when the worker exits. A ``ProcessPoolExecutor`` is not used: if one
of its workers were killed while sending an answer, the parent would wait forever.
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
from resume_hooks.search.index.changed_files import ReadJob, ReadPosition
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.postings import Documents
from resume_hooks.search.index.tokenize import distinct_words
from resume_hooks.search.roles import ROLES
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import SEARCH_CHUNK_BYTES, Line, read_bytes_before, read_lines
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.turns import opens_turn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MAX_UNANSWERED_CALLS = (
    50  # Maximum number of unanswered calls that are remembered for the next part.
)
# Maximum length of a branch or tool name in characters. A longer text cannot be a name.
MAX_LABEL_CHARACTERS = 255
# If a file has been unchanged for this number of seconds, its last line is indexed even if it is
# unfinished.
MIN_SECONDS_SINCE_CHANGE = 60.0
FULL_PART_BYTES = 2 * 1024 * 1024
"""The approximate number of bytes in a part. A part ends with the line that reaches this size.

When a line is added, its whole part is read again.
"""

MAX_PART_WORDS_BYTES = 200_000  # A part also ends when its words reach this number of bytes.

_ID_MODULUS = 2**61 - 1
"""Ids are stored modulo this prime, so that they fit into a column. Two ids that differ in only one
bit remain different."""


class Part(NamedTuple):
    """A part of a file, from ``start_position`` to byte ``end_offset``.

    ``documents`` maps the name of each index to the part's documents. ``turn_count`` is the number
    of turns in the file up to the part's end, and ``checksum`` is the checksum of the last bytes
    before ``end_offset``. ``next_position`` is the position to read from after the file has grown.
    It equals ``start_position`` unless the part is full. ``has_more`` means that the file
    continues, and ``is_torn`` means that its last line is not complete yet. ``cwd``, ``entrypoint``
    and ``parent_id`` are ``""`` if unknown. Only the first part has a ``parent_id``, the id of the
    parent session.
    """

    documents: dict[str, list[str]]
    start_position: ReadPosition
    next_position: ReadPosition
    end_offset: int
    turn_count: int
    checksum: int
    has_more: bool
    is_torn: bool
    cwd: str
    entrypoint: str
    parent_id: str

    @property
    def part_number(self) -> int:
        """The number of the part in the file, counted from 0."""
        return self.start_position.part_number


def read_parts(job: ReadJob) -> Iterator[Part | None]:
    """Yield the parts of a job's file from its stored position on, or None if the file was deleted.

    If the bytes before this position have changed, start at the beginning of the file.
    """
    try:
        with open_regular(job.path, follow=False, buffering=SEARCH_CHUNK_BYTES) as stream:
            if _is_unchanged(stream, job):
                start_position = job.start_position
            else:
                start_position = ReadPosition()
            part = None
            while part is None or part.has_more:
                part = _read_part(stream, job, part.next_position if part else start_position)
                yield part
    except OSError:
        yield None


def _read_part(stream: BinaryIO, job: ReadJob, start: ReadPosition) -> Part:
    status = os.fstat(stream.fileno())
    is_settled = abs(time.time() - status.st_mtime) > MIN_SECONDS_SINCE_CHANGE
    stream.seek(start.offset)
    reader = _RecordReader(job, start)
    end, lines, is_full, is_torn = start.offset, start.line_count, False, False
    for line in read_lines(stream, start.offset, start.line_count):
        if is_full:
            break
        # A line with complete JSON is complete even without a newline.
        if line.is_torn and records.parse_record(line.body) is None:
            is_torn = not is_settled
            break
        reader.add_line(line)
        end, lines = line.offset + len(line.raw), line.number + 1
        is_full = (
            end - start.offset >= FULL_PART_BYTES or reader.words_bytes >= MAX_PART_WORDS_BYTES
        )
    else:
        line = None
    open_calls = tuple(reader.extractor.open_calls.items())[-MAX_UNANSWERED_CALLS:]
    copy_detector_times = reader.copy_detector.until, reader.copy_detector.latest
    if is_full:
        next_position = ReadPosition(
            end,
            lines,
            reader.turn,
            start.part_number + 1,
            reader.time,
            open_calls,
            copy_detector_times,
        )
    else:
        next_position = start
    checksum = zlib.crc32(read_bytes_before(stream, end))
    has_more = is_full and line is not None
    if not (start.part_number or job.is_subagent):
        parent = read_parent(job.path)
    else:
        parent = None
    session_facts = reader.cwd, reader.entrypoint, parent.session_id if parent else ""
    reader.documents.end_turn()
    return Part(
        reader.documents.documents_by_index,
        start,
        next_position,
        end,
        reader.turn,
        checksum,
        has_more,
        is_torn,
        *session_facts,
    )


def _is_unchanged(stream: BinaryIO, job: ReadJob) -> bool:
    """Check whether the last bytes that were read earlier are unchanged.

    Return False if these bytes ended in the middle of a line and the file has grown since then,
    because the completed line may be different.
    """
    if not job.end_offset:
        return False
    tail = read_bytes_before(stream, job.end_offset)
    if zlib.crc32(tail) != job.checksum:
        return False
    return tail.endswith(b"\n") or stream.seek(0, os.SEEK_END) == job.end_offset


class _RecordReader:
    def __init__(self, job: ReadJob, start: ReadPosition) -> None:
        self.documents = Documents(job.file_id, start.part_number)
        self.words_bytes = 0
        self.turn = start.turn_count
        self.cwd = self.entrypoint = ""
        self.extractor = TextExtractor(dict(start.open_calls), subagent=job.is_subagent)
        # The import takes 4 ms, and a search needs it only if files have changed.
        from resume_hooks.transcripts.transcript import CopyDetector

        self.copy_detector = CopyDetector(*start.copy_detector_times)
        self.time = start.last_record_time
        self._subagent = job.is_subagent
        self._name = os.path.basename(job.path)

    def add_line(self, line: Line) -> None:
        # The raw line is parsed, because copying each line without its newline would be slow.
        record = records.parse_record(line.raw if line.offset else line.body)
        if record is None or self.copy_detector.is_copy_of_earlier_record(record):
            return
        self.turn += opens_turn(record, is_subagent=self._subagent)
        self.cwd = self.cwd or get_string(record, "cwd")
        self.entrypoint = self.entrypoint or get_string(record, "entrypoint")
        texts = self.extractor.extract_texts(record)
        if texts is None:
            return
        timestamp = clock.parse_timestamp(record.get("timestamp"))
        self.time = int(timestamp.timestamp()) if timestamp else self.time
        key, copied_id = _shared_and_own_record_id(record)
        # All titles with the same text in a file get the same id, so that they are indexed as
        # copies.
        if texts.role == "title":
            key, copied_id = (
                int.from_bytes(f"{self._name}\n{texts.prompt}".encode(errors="replace"))
                % _ID_MODULUS,
                0,
            )
        words = encode_weighted_words(texts)
        text_bytes = "".join(texts[2:6]).encode("utf-8", "replace")
        self.words_bytes += len(words)
        fields = {
            "line": line.number,
            "offset": line.offset,
            "length": len(line.raw),
            "time": max(0, self.time),
            "role": ROLES.index(texts.role),
            "key": key,
            "own": copied_id,
            "digest": 0
            if record.get("truncated") is True
            else 1 + zlib.crc32(text_bytes),  # 0 means that the texts were trimmed.
            "tool": [name[:MAX_LABEL_CHARACTERS] for name in texts.tool.split(", ") if name],
            "branch": [branch[:MAX_LABEL_CHARACTERS]]
            if (branch := get_string(record, "gitBranch"))
            else [],
            "path": texts.files,
        }
        self.documents.add_record(self.turn, words.decode(), fields)


def encode_weighted_words(texts: RecordTexts) -> bytes:
    """Return the words of a record. Words that the user or the model wrote occur twice in the result."""
    spoken_words = []
    for text in (texts.prompt, texts.reply):
        if text:
            spoken_words.append(distinct_words(text))
    other_words = []
    for text in (texts.input, texts.result):
        if text:
            other_words.append(distinct_words(text, has_line_numbers=True))
    return b" ".join([*spoken_words, *spoken_words, *other_words])


def _shared_and_own_record_id(record: Record) -> tuple[int, int]:
    """Return the id that a record shares with its copies, and the record's own id.

    The second id is 0 if the record is not a copy.
    """
    record_id, original_id = (
        _uuid_number(get_string(record, "uuid")),
        _uuid_number(records.read_copied_uuid(record)),
    )
    if original_id and original_id != record_id:
        return (original_id, record_id)
    return (record_id, 0)


def _uuid_number(uuid: str) -> int:
    """Return a UUID as a number of 61 bits, or 0 if the text is not a UUID."""
    digits = uuid.replace("-", "")
    try:
        if len(digits) == 32:
            return int(digits, 16) % _ID_MODULUS
        return 0
    except ValueError:
        return 0


# Starting worker processes saves time only if more bytes than this must be read.
MIN_PARALLEL_BYTES = 24 * 1024 * 1024
MAX_PROCESSES = 8
# The largest pipe capacity in bytes that every user may set. With a large pipe, a worker can
# continue to read while this process writes.
PIPE_CAPACITY_BYTES = 1024 * 1024
MAX_WAITING_PARTS, MAX_WAITING_BYTES = 64, 64 * 1024 * 1024
"""Maximum number of parts that wait until earlier parts are written, and maximum number of
transcript bytes in these waiting parts."""

MAX_TERMINATION_SECONDS = 1.0  # number of seconds to wait until a terminated process has ended

SizedJob = tuple[ReadJob, int]  # a job and the number of bytes to read for it

JobResult = tuple[ReadJob, Part | None]


def read_jobs(jobs: Sequence[SizedJob]) -> Generator[JobResult]:
    """Yield each job with each part of its file, or with None if the file was deleted."""
    processes = min(_cpu_count(), MAX_PROCESSES)
    # Forking is unsafe while other threads are running: if one of them holds a lock, the new
    # process might wait for it forever.
    can_fork = (
        sys.platform.startswith("linux") and threading.current_thread() is threading.main_thread()
    )
    if processes == 1 or sum(size for _, size in jobs) < MIN_PARALLEL_BYTES or not can_fork:
        processes = 0
    process_numbers = _assign_jobs(jobs, processes)
    workers: list[_Worker] = []
    try:
        with _delay_interruptions() if processes else contextlib.nullcontext():
            for number in range(processes):
                own_jobs = [
                    job
                    for (job, _), process_number in zip(jobs, process_numbers, strict=True)
                    if process_number == number
                ]
                workers.append(_Worker(own_jobs, workers))
        for (job, _), process_number in zip(jobs, process_numbers, strict=True):
            yield from _receive_parts_of_job(job, process_number, workers)
    finally:
        for worker in workers:
            worker.stop_process()


def _assign_jobs(jobs: Sequence[SizedJob], process_count: int) -> list[int]:
    """Return a list with the number of the process that reads each job.

    Each job is given to the process that has the fewest bytes to read so far.
    """
    process_numbers, loads = [], [0] * max(1, process_count)
    for _, size in jobs:
        process_numbers.append(loads.index(min(loads)))
        loads[process_numbers[-1]] += size
    return process_numbers


def _receive_parts_of_job(
    job: ReadJob, process_number: int, workers: Sequence[_Worker]
) -> Iterator[JobResult]:
    """Yield a job with each part of its file.

    If the worker ends early, read the remaining parts in this process.
    """
    while workers and _wait_for_answer(workers, workers[process_number]):
        part = workers[process_number].parts.popleft()
        yield job, part
        if part is None or not part.has_more:
            return
        job = job._replace(
            start_position=part.next_position, end_offset=part.end_offset, checksum=part.checksum
        )
    yield from ((job, part) for part in read_parts(job))


def _wait_for_answer(workers: Sequence[_Worker], awaited_worker: _Worker) -> bool:
    """Wait for an answer from ``awaited_worker``, and collect answers from the other workers meanwhile.

    Return False if the awaited worker ended without an answer. File sizes differ greatly, so the
    other workers would be idle if their answers were not collected.
    """
    # Imported here because only an update with workers needs it.
    from multiprocessing.connection import wait

    while not (awaited_worker.parts or awaited_worker.has_ended):
        sizes = []
        for worker in workers:
            for part in worker.parts:
                sizes.append(part.end_offset - part.start_position.offset if part else 0)
        has_room = len(sizes) < MAX_WAITING_PARTS and sum(sizes) < MAX_WAITING_BYTES
        for pipe in wait(
            [
                worker.pipe
                for worker in workers
                if not worker.has_ended and (has_room or worker is awaited_worker)
            ]
        ):
            next(worker for worker in workers if worker.pipe is pipe).receive_answer()
    return bool(awaited_worker.parts)


class _Worker:
    """A process that reads the files of its jobs in order. When it has stopped, ``has_ended`` is true."""

    def __init__(self, jobs: Sequence[ReadJob], other_workers: Sequence[_Worker]) -> None:
        # Imported here because the import takes 20 ms, which would slow down a small update.
        from multiprocessing import get_context

        context = get_context("fork")
        self.parts = deque[Part | None]()
        self.pipe, answer_pipe = context.Pipe(duplex=False)
        _enlarge_pipe(answer_pipe)
        inherited_pipes = [worker.pipe for worker in (*other_workers, self)]
        self._process = context.Process(
            target=_run_worker, args=(jobs, answer_pipe, inherited_pipes), daemon=True
        )
        self.has_ended = False
        try:
            self._process.start()
        except OSError:  # The system allows no further processes.
            self.has_ended = True
        answer_pipe.close()  # Otherwise the pipe would stay open after the worker's end.

    def receive_answer(self) -> None:
        try:
            self.parts.append(self.pipe.recv())
        except (EOFError, OSError):
            self.has_ended = True

    def stop_process(self) -> None:
        self.pipe.close()
        if self._process.pid is None:
            return
        self._process.terminate()
        self._process.join(MAX_TERMINATION_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _enlarge_pipe(pipe: Connection) -> None:
    # Only Linux can enlarge a pipe. On other systems the worker waits more often.
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import fcntl  # Windows does not have this module.

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_CAPACITY_BYTES)


def _cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _delay_interruptions() -> Iterator[None]:
    """Delay Ctrl-C (SIGINT) while workers start.

    Each worker must first set its own signal handlers.
    """
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)


def _run_worker(
    jobs: Sequence[ReadJob], answer_pipe: Connection, inherited_pipes: Sequence[Connection]
) -> None:
    """Read the files that the jobs name and send their parts to the parent.

    This runs in a worker process, which ignores Ctrl-C, because the parent handles it, and which
    ends when the parent has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for pipe in inherited_pipes:
        pipe.close()  # The worker must not keep the reading ends open, because only the parent reads the answers.
    with contextlib.suppress(OSError):  # Sending fails if the parent has ended.
        for job in jobs:
            for part in read_parts(job):
                answer_pipe.send(part)
