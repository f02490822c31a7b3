"""Reading many transcripts: in this process, or in several where there is enough to read and they can be forked.

Other processes never touch the index; they end with this one, however that ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from resume_hooks.index.reading import Batch, Job, read

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

PARALLEL = 24 * 1024 * 1024
"""Bytes to be read from which on starting other processes pays."""

CHUNK = 4 * 1024 * 1024
"""Bytes of small files that a process is given at a time."""

MOST_PROCESSES = 8
WAITING = 3
"""Chunks a process that may be under way or wait to be written: what bounds the memory."""

ORPHAN_CHECK = 0.5
"""Seconds after which a process notices that its parent is gone."""

Sized = tuple[Job, int]
"""A job, and the bytes of it that are to be read."""

Result = tuple[Job, Batch | None]


def readings(jobs: Sequence[Sized]) -> Iterator[Result]:
    """Each job with what was read of it, None for a file that is gone; a large file comes in several batches."""
    processes = min(_cpus(), MOST_PROCESSES)
    if processes == 1 or sum(size for _, size in jobs) < PARALLEL or not sys.platform.startswith("linux"):
        for job, _ in jobs:
            yield from _whole(job)
        return
    # Loading it takes 20 ms, which a small update would feel.
    from multiprocessing import get_context  # noqa: PLC0415

    with get_context("fork").Pool(processes, _prepare, (os.getpid(),)) as pool:
        yield from _spread(pool, deque(_chunks(jobs)), processes * WAITING)


def _whole(job: Job) -> Iterator[Result]:
    batch = read(job)
    yield job, batch
    while batch is not None and batch.more:
        job = job._replace(place=batch.place)
        batch = read(job)
        yield job, batch


def _spread(pool: Pool, waiting: deque[list[Job]], most: int) -> Iterator[Result]:
    under_way: deque[tuple[list[Job], Any]] = deque()
    while waiting or under_way:
        while waiting and len(under_way) < most:
            chunk = waiting.popleft()
            under_way.append((chunk, pool.apply_async(_read_all, (chunk,))))
        chunk, result = under_way.popleft()
        for job, batch in zip(chunk, result.get(), strict=True):
            yield job, batch
            if batch is not None and batch.more:
                waiting.appendleft([job._replace(place=batch.place)])


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


def _prepare(parent: int) -> None:
    """Make a process that leaves interruptions to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK)
    os._exit(1)
