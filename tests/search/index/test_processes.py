"""Tests of killed, interrupted and parallel builds of the index.

The index is complete afterwards, and no process is left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from resume_hooks.search.index import connect, read_transcript
from resume_hooks.search.index.changed_files import ReadJob
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.postings import RECORD_INDEX, WORDS_FIELD_NAME, Postings
from resume_hooks.search.index.read_transcript import read_jobs, read_parts
from resume_hooks.sessions.transcript_files import list_transcripts
from tests.builders import SESSION, ConfigHome
from tests.needs import REPO
from tests.search.index.probe import (
    append_records,
    build_new_index,
    fill_home,
    index_database_path,
    prompt_with_id,
    read_found_words,
    read_index,
    write_session_file,
)

SESSION_FILE_NAME = f"{SESSION}.jsonl"
BUILD_SCRIPT = """
import os, sys
from resume_hooks.paths import Where
from resume_hooks.search.index import connect, read_transcript, update
from resume_hooks.search.index.connect import open_index
connect.MAX_LOCK_WAIT_SECONDS = 100.0  # a busy machine
read_transcript.MIN_PARALLEL_BYTES = 1
update.BYTES_PER_COMMIT, update.LARGE_UPDATE_BYTES = 300_000, 1
read_transcript._cpu_count = lambda: 3
try:
    with open_index(Where()) as index:
        print(index.postings.record_count, index.notes, flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""
"""Builds the index with three processes, even if the index is small."""


def start_builder(home: ConfigHome) -> subprocess.Popen[str]:
    """Start a process, in its own process group, that builds the index."""
    environ = {**os.environ, **home.environ, "PYTHONPATH": str(REPO / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-c", BUILD_SCRIPT], env=environ, start_new_session=True, **pipes
    )


def remaining_processes(process_session_id: int) -> list[int]:
    """Return the ids of the running processes in this process session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == process_session_id and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def wait_for_processes_to_end(process_session_id: int, max_seconds: float = 10.0) -> bool:
    """Check whether all processes of a builder end within ``max_seconds``."""
    deadline = time.monotonic() + max_seconds
    while (left := remaining_processes(process_session_id)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


def test_the_next_build_completes_a_killed_one(config_home: ConfigHome, tmp_path: Path) -> None:
    """A build that was killed leaves no worker, and the next build completes the index."""
    count = fill_home(config_home)
    rng = random.Random(7)
    for _ in range(4):
        process = start_builder(config_home)
        time.sleep(rng.uniform(0.1, 0.7))
        process.kill()
        process.communicate()
        assert wait_for_processes_to_end(process.pid)
    with open_index(config_home.where) as index:
        assert index.postings.record_count == count
        index.postings.verify_files()
        warm = read_found_words(index)
    assert warm == build_new_index(config_home, tmp_path).found_words


def test_an_interrupted_build_ends_without_a_message(config_home: ConfigHome) -> None:
    """Ctrl+C ends a build with all its workers, without a message."""
    fill_home(config_home)
    rng = random.Random(3)
    interrupted = 0
    for _ in range(4):
        process = start_builder(config_home)
        time.sleep(rng.uniform(0.25, 0.6))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        if process.returncode == 130:
            interrupted += 1
            assert errors == ""
        assert wait_for_processes_to_end(process.pid)
    assert read_index(config_home).outcome.remaining_file_count == 0


def test_parallel_builds_end_with_the_complete_index(config_home: ConfigHome) -> None:
    """Parallel builds wait for each other, and each of them ends with the complete index."""
    count = fill_home(config_home)
    processes = [start_builder(config_home) for _ in range(3)]
    for process in processes:
        printed, errors = process.communicate(timeout=60)
        assert (printed.strip(), errors) == (f"{count} []", "")
    assert read_index(config_home).outcome.read_file_count == 0


@pytest.fixture
def use_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every build use two processes, even if the index is small."""
    monkeypatch.setattr(read_transcript, "MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(read_transcript, "_cpu_count", lambda: 2)


@pytest.mark.usefixtures("use_two_processes")
def test_a_killed_worker_loses_no_record(config_home: ConfigHome) -> None:
    """If all workers are killed, the parent reads their files itself and keeps the order of the files."""
    fill_home(config_home)
    before = set(active_children())
    jobs = [
        (ReadJob(file.path, is_subagent=False), file.size)
        for file in list_transcripts(config_home.where)
    ]
    results = []
    for result in read_jobs(jobs):
        results.append(result)
        for process in set(active_children()) - before:
            process.kill()
    assert list(dict.fromkeys(job.path for job, _ in results)) == [job.path for job, _ in jobs]
    assert [part for _, part in results] == [part for job, _ in jobs for part in read_parts(job)]


@pytest.mark.usefixtures("use_two_processes")
def test_a_long_file_does_not_block_other_workers(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has read its short files can end while another worker still reads a long file.

    The parent receives all results early but uses them in the order of the files.
    """
    monkeypatch.setattr(read_transcript, "PIPE_CAPACITY_BYTES", 4_096)
    monkeypatch.setattr("resume_hooks.search.index.read_transcript.FULL_PART_BYTES", 2_000)
    for files, records in ((2, 30), (1, 120)):
        fill_home(config_home, files, records)
    jobs = [
        ReadJob(file.path, is_subagent=False)
        for file in sorted(list_transcripts(config_home.where), key=lambda f: -f.size)
    ]
    long, short = ([(job, part) for part in read_parts(job)] for job in jobs)
    before = set(active_children())
    results = read_jobs([(job, 1) for job in jobs])
    found = []
    for _ in long:
        found.append(next(results))
        time.sleep(0.01)
    deadline = time.monotonic() + 10
    while set(active_children()) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert set(active_children()) == before
    assert [part for _, part in (*found, *results)] == [part for _, part in (*long, *short)]


@pytest.mark.usefixtures("use_two_processes")
def test_without_workers_the_parent_reads_all_files(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no process can be forked, the parent reads all files."""
    count = fill_home(config_home, session_count=4)

    def fail_to_fork() -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("os.fork", fail_to_fork)
    with open_index(config_home.where) as index:
        assert index.postings.record_count == count


@pytest.mark.usefixtures("use_two_processes")
def test_two_processes_build_the_same_index_as_one(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes build the same index as a single process."""
    fill_home(config_home, session_count=6)
    monkeypatch.setattr("resume_hooks.search.index.read_transcript.FULL_PART_BYTES", 30_000)
    with monkeypatch.context() as patch:
        patch.setattr(read_transcript, "_cpu_count", lambda: 1)
        alone = build_new_index(config_home, tmp_path).found_words
    assert build_new_index(config_home, tmp_path).found_words == alone


@pytest.mark.usefixtures("use_two_processes")
def test_no_worker_is_left_at_the_time_limit(config_home: ConfigHome) -> None:
    """No worker is left after the time limit, and the next update completes the index."""
    count = fill_home(config_home)
    before = set(active_children())
    with open_index(config_home.where, max_seconds=0.01) as index:
        assert index.update_outcome.remaining_file_count
    assert set(active_children()) <= before
    with open_index(config_home.where) as index:
        assert index.postings.record_count == count


def test_a_reader_keeps_the_old_index_after_a_rebuild(config_home: ConfigHome) -> None:
    """A process that opened the index before a rebuild still reads the old content.

    The process does not damage the new index.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    with open_index(config_home.where) as old:
        append_records(config_home.project() / SESSION_FILE_NAME, prompt_with_id("beta"))
        assert read_index(config_home, rebuild=True).words() == {"alpha", "beta"}
        assert {
            word for _, _, field, word in read_found_words(old) if field == WORDS_FIELD_NAME
        } == {"alpha"}
        append_records(config_home.project() / SESSION_FILE_NAME, prompt_with_id("gamma"))
        assert read_index(config_home).words() == {"alpha", "beta", "gamma"}
    assert read_index(config_home).words() == {"alpha", "beta", "gamma"}
    assert read_index(config_home).outcome.read_file_count == 0


def test_an_index_rebuilt_while_it_is_opened_is_consistent(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the index is rebuilt while it is being opened, its words and its table are from the same build."""
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    real = Postings.load_latest_commit
    begun: list[connect.OpenIndex] = []

    def rebuild_and_load(postings: Postings) -> None:
        if not begun:
            connect.delete_index(config_home.where)
            begun.append(connect._open_database_and_postings(config_home.where, is_writing=True))
            real(begun[0].postings)
        real(postings)

    monkeypatch.setattr(Postings, "load_latest_commit", rebuild_and_load)
    with open_index(config_home.where) as index:
        assert index.postings.record_count == 1


def test_a_busy_index_is_searched_in_its_current_state(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another command writes the index, a search uses the stored content and says so."""
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    append_records(config_home.project() / SESSION_FILE_NAME, prompt_with_id("beta"))
    monkeypatch.setattr("resume_hooks.search.index.connect.MAX_LOCK_WAIT_SECONDS", 0.1)

    with (
        open(f"{index_database_path(config_home)}.lock", "w") as lock,
        contextlib.closing(
            sqlite3.connect(index_database_path(config_home), isolation_level=None)
        ) as db,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        db.execute("BEGIN IMMEDIATE")
        holding = read_index(config_home)
        db.execute("ROLLBACK")
    assert holding.words() == {"alpha"}
    assert "Another command" in holding.notes[0]
    assert read_index(config_home).words() == {"alpha", "beta"}


@pytest.mark.usefixtures("use_two_processes")
def test_thousands_of_tiny_files_do_not_deadlock(tmp_path: Path) -> None:
    """Thousands of small files are read without a deadlock, although the results exceed a pipe's capacity."""
    long = tmp_path / ("n" * 200)
    long.mkdir()
    jobs = []
    for number in range(4_000):
        path = long / f"{number}.jsonl"
        path.write_bytes(b'{"type":"user","message":{"content":"tiny"}}\n')
        jobs.append((ReadJob(str(path), is_subagent=False), 1))
    assert (
        sum(
            part is not None and len(part.documents[RECORD_INDEX]) == 1
            for _, part in read_jobs(jobs)
        )
        == 4_000
    )
