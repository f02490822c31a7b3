"""Read many transcripts: in this process, or in several if there is enough to read and they can be forked.

Other processes never touch the index, and end with this one, however that ends. If one of them ends early (out of
memory, killed), or can't be started, its files are read here. Each has a pipe of its own, which ends with it: in a
``ProcessPoolExecutor`` one that is killed while it answers leaves the parent waiting for the rest for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from resume_hooks.search.index.read_transcript import Part, ReadJob, read

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PARALLEL = 24 * 1024 * 1024  # bytes to be read from which on starting other processes pays
MOST_PROCESSES = 8
PIPE = 1024 * 1024  # bytes that a pipe may hold: what a user may ask for, so that a process reads on while we write
AHEAD, AHEAD_BYTES = 64, 64 * 1024 * 1024
"""Parts that wait here for those of a file before them, and bytes of transcripts that they are of, about."""

PATIENCE = 1.0  # seconds that a process which was told to end is waited for

Sized = tuple[ReadJob, int]  # a job, and the bytes of it that are to be read

Result = tuple[ReadJob, Part | None]


def readings(jobs: Sequence[Sized]) -> Generator[Result]:
    """Each job with the parts that were read of it, None for a file that is gone."""
    processes = min(_cpus(), MOST_PROCESSES)
    if processes == 1 or sum(size for _, size in jobs) < PARALLEL or not _can_fork():
        processes = 0
    shares = _shares(jobs, processes)
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


def _can_fork() -> bool:
    """Whether a process can be forked: beside other threads it might wait for ever for what one of them had locked."""
    return sys.platform.startswith("linux") and threading.current_thread() is threading.main_thread()


def _shares(jobs: Sequence[Sized], processes: int) -> list[int]:
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
    yield from ((job, part) for part in read(job))


def _gather(workers: Sequence[_Worker], wanted: _Worker) -> bool:
    """Wait until one of the processes has answered, and take what others say meanwhile; false if it ended instead.

    Files are of very unequal size: who had to wait for the reader of a large one would leave a processor idle.
    """
    from multiprocessing.connection import wait  # loaded with the first worker

    while not (wanted.answers or wanted.ended):
        sizes = [part.end - part.start.offset if part else 0 for worker in workers for part in worker.answers]
        room = len(sizes) < AHEAD and sum(sizes) < AHEAD_BYTES
        for pipe in wait([worker.pipe for worker in workers if not worker.ended and (room or worker is wanted)]):
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
        self._process = context.Process(target=_serve, args=(jobs, answering, inherited), daemon=True)
        self.ended = False
        try:
            self._process.start()
        except OSError:  # no room for one more
            self.ended = True
        answering.close()  # so that the pipe ends when the process does

    def receive(self) -> None:
        """Take the next part that the process reads."""
        try:
            self.answers.append(self.pipe.recv())
        except (EOFError, OSError):
            self.ended = True

    def end(self) -> None:
        """Have the process be gone."""
        self.pipe.close()
        if self._process.pid is None:
            return
        self._process.terminate()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _widen(pipe: Connection) -> None:
    with contextlib.suppress(OSError, AttributeError, ImportError):  # Linux alone can; without, it only waits
        import fcntl  # not on every platform

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
            for part in read(job):
                answers.send(part)
