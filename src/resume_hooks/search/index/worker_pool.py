"""Reading many transcripts: in this process, or in several where there is enough to read and they can be forked.

Other processes never touch the index; they end with this one, however that ends. Where one of them ends early (out of
memory, killed), what it had in hand is read here. No threads and no locks are shared with them, so nothing can hang.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from resume_hooks.search.index.reading import Batch, Job, read

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PARALLEL = 24 * 1024 * 1024
"""Bytes to be read from which on starting other processes pays."""

CHUNK = 4 * 1024 * 1024
"""Bytes of small files that a process is given at a time."""

MOST_PROCESSES = 8
WAITING = 3
"""Chunks that a process is given at once; with the size of its pipe, what bounds the memory."""

ASKED = 32 * 1024
"""Bytes of tasks that a process is given beyond the one that it is at; any pipe holds them."""

PIPE = 1024 * 1024
"""Bytes that a pipe may hold: what a user may ask for, and more than the words of a chunk."""

PATIENCE = 1.0
"""Seconds that a process which was told to end is waited for."""

ORPHAN_CHECK = 0.5
"""Seconds after which a process notices that its parent is gone."""

Sized = tuple[Job, int]
"""A job, and the bytes of it that are to be read."""

Result = tuple[Job, Batch | None]


def readings(jobs: Sequence[Sized]) -> Generator[Result]:
    """Each job with what was read of it, None for a file that is gone; a large file comes in several batches."""
    processes = min(_cpus(), MOST_PROCESSES)
    if processes == 1 or sum(size for _, size in jobs) < PARALLEL or not sys.platform.startswith("linux"):
        for job, _ in jobs:
            yield from _whole(job)
        return
    workers: list[_Worker] = []
    try:
        with _undisturbed():
            for _ in range(processes):
                workers.append(_Worker())  # noqa: PERF401, each must be known as soon as it runs
        yield from _spread(workers, deque(_chunks(jobs)))
    finally:
        for worker in workers:
            worker.end()


def _whole(job: Job) -> Iterator[Result]:
    batch = read(job)
    yield job, batch
    while batch is not None and batch.more:
        job = job._replace(place=batch.place)
        batch = read(job)
        yield job, batch


class _Task:
    """Jobs that one process reads; ``batches`` are there once it is done."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.asked = pickle.dumps(jobs)
        self.batches: list[Batch | None] | None = None


class _Worker:
    """Another process, which reads one task after the other; the next ones wait with it while we write."""

    def __init__(self) -> None:
        # Loading it takes 20 ms, which a small update would feel.
        from multiprocessing import get_context  # noqa: PLC0415

        context = get_context("fork")
        theirs, self._asking = context.Pipe(duplex=False)
        self.answers, answering = context.Pipe(duplex=False)
        _widen(answering)
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, answering, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()
        answering.close()  # so that the pipe ends when the process does
        self.tasks: deque[_Task] = deque()
        self._asked = 0

    def may_have(self, task: _Task) -> bool:
        """Whether a task fits into its pipe: where it waits to answer, we must not wait for it to be asked."""
        return not self.tasks or (len(self.tasks) < WAITING and self._asked + len(task.asked) <= ASKED)

    def give(self, task: _Task) -> bool:
        """Hand over a task; whether the process is there to take it."""
        try:
            self._asking.send_bytes(task.asked)
        except OSError:
            return False
        self._asked += len(task.asked)
        self.tasks.append(task)
        return True

    def finish(self) -> bool:
        """Take in what became of its first task; whether the process lives."""
        try:
            self._take(self.answers.recv())
        except (EOFError, OSError):
            self.mourn()
            return False
        return True

    def mourn(self) -> None:
        """Take in what it answered before it ended, and read the rest here."""
        with contextlib.suppress(EOFError, OSError):
            while self.tasks:
                self._take(self.answers.recv())
        while self.tasks:
            self._take(_read_all(self.tasks[0].jobs))

    def _take(self, batches: list[Batch | None]) -> None:
        task = self.tasks.popleft()
        task.batches = batches
        self._asked -= len(task.asked)

    def end(self) -> None:
        self._asking.close()
        self.answers.close()
        self._process.terminate()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _spread(workers: Sequence[_Worker], waiting: deque[list[Job]]) -> Iterator[Result]:
    """What the processes read, in the order of the jobs."""
    alive = list(workers)
    under_way: deque[_Task] = deque()
    while waiting or under_way:
        under_way += _handed_out(alive, waiting)
        if not under_way:  # nobody is left
            under_way.append(_Task(waiting.popleft()))
            under_way[0].batches = _read_all(under_way[0].jobs)
        first = under_way[0]
        for worker in _ready(alive, wait=first.batches is None):
            if not worker.finish():
                alive.remove(worker)
        if first.batches is None:
            continue
        under_way.popleft()
        for job, batch in zip(first.jobs, first.batches, strict=True):
            yield job, batch
            if batch is not None and batch.more:
                waiting.appendleft([job._replace(place=batch.place)])


def _handed_out(alive: list[_Worker], waiting: deque[list[Job]]) -> Iterator[_Task]:
    """Tasks as they are given to processes, for as long as one may have more."""
    while waiting and alive:
        free, task = min(alive, key=lambda worker: len(worker.tasks)), _Task(waiting[0])
        if not free.may_have(task):
            return
        if free.give(task):
            waiting.popleft()
            yield task
        else:
            alive.remove(free)
            free.mourn()


def _ready(workers: Sequence[_Worker], *, wait: bool) -> list[_Worker]:
    """The processes that are done with a task, at least one of them if ``wait``."""
    from multiprocessing.connection import wait as wait_for  # noqa: PLC0415, as above

    by_pipe = {worker.answers: worker for worker in workers if worker.tasks}
    done = wait_for(list(by_pipe), None if wait else 0) if by_pipe else []
    return [worker for pipe, worker in by_pipe.items() if pipe in done]


def _widen(pipe: Connection) -> None:
    """Give a pipe room for a whole answer, so that whoever writes it can go on while we are busy."""
    with contextlib.suppress(OSError, AttributeError, ImportError):  # Linux alone can; without, it only waits
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)


def _chunks(jobs: Sequence[Sized]) -> Iterator[list[Job]]:
    chunk: list[Job] = []
    gathered = 0
    for job, size in jobs:
        chunk.append(job)
        gathered += size
        if gathered >= CHUNK:
            yield chunk
            chunk, gathered = [], 0
    if chunk:
        yield chunk


def _read_all(jobs: list[Job]) -> list[Batch | None]:
    return [read(job) for job in jobs]


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


def _serve(asked: Connection, answers: Connection, parent: int) -> None:
    """The life of such a process: it leaves interruptions to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the parent has no more, or is gone
        while True:
            answers.send(_read_all(asked.recv()))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK)
    os._exit(1)
