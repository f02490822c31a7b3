"""Measure indexing, searches and outlines in a full home, next to the peer: time, memory, index size.

A "cold" index is one that does not exist yet. The transcripts themselves are in the system's cache,
because they were just written.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import orjson

from benchmarks.bench import LARGE_SESSION_ID, Bench, CommandRun
from benchmarks.library import (
    FILE_COUNT,
    ROUNDS,
    Library,
    ProcessCost,
    folder_size,
    format_machine_load,
    print_note,
    print_row,
)
from benchmarks.listing import print_listings
from benchmarks.recall.peer import ask_peer_index
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import delete_index, index_status, open_index
from resume_hooks.search.index.database import index_file_path, open_index_read_only
from resume_hooks.search.query import parse_query
from resume_hooks.search.run_search import Searcher, search_index
from resume_hooks.search.scope import Scope
from tests.builders import user

REDUCED_SESSION_COUNT = 2_000
QUERIES = (
    "git status",
    "fix failing test",
    "why did the build fail after the merge",
    "package lock conflict",
    "getUserName",
    "src/index.ts",
    '"exit code 1"',
    "pytest fixture scope",
    "docker compose environment variables",
    "refactor parser -test",
    "handl",
    "figuration",
    "zqxjkv wmpfhg",
    "the",
    "error timeout retry",
    "SessionStart hook",
    "npm install",
    "デフォルト",
    "what did we decide about the cache yesterday",
    "sluggish quit when the network is gone",
)
"""The queries: words, questions, identifiers, paths, phrases, parts of words, exclusions, words in
other scripts, and words that do not occur."""

QUESTION_WORDINGS = (
    "sluggish quit when the network is gone",
    "slow exit offline",
    "shutdown hangs without a connection",
)
"""A question in three wordings."""

MAX_HITS = 10


def print_search_rows(bench: Bench, peer: str | None) -> None:
    """Print the rows for the index, for searches and for an outline."""
    folder = bench.work.parent / "library"
    library = Library(bench, folder)
    print(
        f"\n{'index and search':52} {'ms':>8} {'cpu ms':>8}   target, notes; {format_machine_load()}"
    )
    print_first_search(library)
    print_index_build_time(library)
    print_freshness_check_time(library, FILE_COUNT)
    print_listings(library, peer)
    library.add_large_session()
    library.run(bench.shell_run("doctor", "--index", "update"))
    print_search_times(library)
    if peer is not None:
        print_peer_rows(library, peer)
    library.keep_first_sessions(REDUCED_SESSION_COUNT)
    library.run(bench.shell_run("doctor", "--index", "rebuild"))
    print_freshness_check_time(library, REDUCED_SESSION_COUNT)
    shutil.rmtree(folder)


def print_first_search(library: Library) -> None:
    """Print the time of the first search in a home.

    This search indexes the newest sessions for a limited time.
    """
    bench, where, size = library.bench, Where(library.env), library.total_bytes
    for what, run, patience in (
        (
            "first search ever, from the shell",
            bench.shell_run("search", "--all", "git status"),
            "1.5 s",
        ),
        (
            "first search ever, >search through the hook",
            bench.prompt_run(">search --all git status"),
            "1.5 s",
        ),
    ):
        spent = library.measure_medians(run, before_each_run=lambda: delete_index(where))
        with contextlib.closing(open_index_read_only(index_file_path(where))) as db:
            (read,) = db.execute("SELECT total(end) FROM files").fetchone()
        delete_index(where)
        print_row(what, spent, f"indexes for {patience}")
        print_note(
            f"{read / 1e6:,.0f} MB of {size / 1e6:,.0f} indexed by then; {format_peak_memory(library, run)}"
        )


def print_index_build_time(library: Library) -> None:
    """Print the time and the memory of building the index of the whole home."""
    bench, size = library.bench, library.total_bytes
    run = bench.shell_run("doctor", "--index", "rebuild", "--json")
    spent = library.measure_medians(run)
    peak = format_peak_memory(library, run)
    index = index_status(Where(library.env)).index_bytes
    what = f"cold index, {FILE_COUNT:,} files, {size / 1e6:,.0f} MB"
    print_row(what, spent, f"{size / 1e3 / spent.ms:,.0f} MB/s (250)")
    print_note(
        f"{size / 1e3 / spent.cpu_ms:,.0f} MB per second of one core; {format_machine_load()}"
    )
    print_note(f"{peak}; index {index / 1e6:,.1f} MB, {100 * index / size:.1f} % (12 %)")


def format_peak_memory(library: Library, run: CommandRun) -> str:
    """Return a text with the peak memory of a command."""
    return f"memory of all its processes {library.measure_peak_megabytes(run):,.0f} MB"


def print_freshness_check_time(library: Library, file_count: int) -> None:
    """Print how long a search takes to find out that no file has changed."""

    def open_index_once() -> None:
        with open_index(Where(library.env)):
            pass

    target = "40" if file_count == REDUCED_SESSION_COUNT else ""
    print_row(
        f"warm check, {file_count:,} files, in process",
        ProcessCost(statistics.median(time_rounds(open_index_once, 21)), 0, b""),
        target,
    )


def print_search_times(library: Library) -> None:
    """Print rows for searches and for an outline.

    Searches are measured in this process, from the shell, through the hook, and after a session has
    grown by a line.
    """
    bench = library.bench
    inside = [
        ms
        for query in QUERIES
        for ms in time_rounds(partial(search_index, [query], Scope(), Where(library.env)), 5)
    ]
    print_spread(f"search in process, {len(QUERIES)} queries", inside, "")
    several = partial(
        search_index,
        QUESTION_WORDINGS[:1],
        Scope(),
        Where(library.env),
        other_wordings=QUESTION_WORDINGS[1:],
    )
    print_spread("search in process, one question in 3 wordings", time_rounds(several, 21), "")
    with open_index(Where(library.env)) as index:
        searcher = Searcher(index, Scope(), Where(library.env))
        typed = [
            parse_query([QUESTION_WORDINGS[0][:end]])
            for end in range(2, len(QUESTION_WORDINGS[0]) + 1)
        ]
        keys = [
            ms
            for query in typed
            for ms in time_rounds(partial(searcher.search, [query], MAX_HITS), 3)
        ]
    print_spread(f"a letter typed into an open index, {len(typed)} letters", keys, "")
    outside = [
        library.run(bench.shell_run("search", "--all", "--", query)).ms
        for query in QUERIES
        for _ in range(ROUNDS)
    ]
    print_spread(f"search from the shell, {len(QUERIES)} queries", outside, "130")
    print_note(format_peak_memory(library, bench.shell_run("search", "--all", "git status")))
    found = library.measure_medians(bench.prompt_run(">search --all git status"), 7)
    print_row(">search --all git status, through the hook", found, "")
    print_row(
        ">search git status, this project",
        library.measure_medians(bench.prompt_run(">search git status"), 7),
        "",
    )
    numbers = count()
    appended = bench.shell_run("search", "--all", "zebrafish")
    spent = library.measure_medians(appended, 7, lambda: append_prompt(library.big, next(numbers)))
    if b"where did the zebrafish go" not in spent.output:
        raise RuntimeError("The search does not find the appended prompt")
    print_row("search after one more line in 50 MB, from the shell", spent, "130")
    print_row(
        "outline of 50 MB, from the shell",
        library.measure_medians(bench.shell_run("outline", LARGE_SESSION_ID), 5),
        "",
    )
    print_note(format_machine_load())


def append_prompt(session: Path, prompt_number: int) -> None:
    """Append a prompt to a session."""
    record = user(
        f"where did the zebrafish go, {prompt_number}?",
        uuid=f"zebra{prompt_number}",
        session_id=session.stem,
    )
    with open(session, "ab") as stream:
        stream.write(orjson.dumps(record) + b"\n")


def print_peer_rows(library: Library, peer: str) -> None:
    """Print rows for the peer in the same home, including the session of 50 MB."""
    bench, size = library.bench, library.total_bytes
    nowhere = library.config.parent / "no-codex"
    nowhere.mkdir()
    kept = library.config.parent / ".cctools"
    build = [
        peer,
        "build-index",
        "--claude-home",
        str(library.config),
        "--codex-home",
        str(nowhere),
    ]
    run = (build, b"", bench.work)
    spent = library.measure_medians(run, 1)
    index = folder_size(kept)
    print_row(
        f"peer: build-index, {FILE_COUNT + 1:,} files, {size / 1e6:,.0f} MB",
        spent,
        f"{size / 1e3 / spent.ms:,.0f} MB/s",
    )
    print_row("peer: build-index, nothing changed", library.measure_medians(run), "")
    numbers = count(1_000)
    grown = library.measure_medians(run, ROUNDS, lambda: append_prompt(library.big, next(numbers)))
    print_row("peer: build-index, one more line in 50 MB", grown, "")
    shutil.rmtree(kept)
    peak = library.measure_peak_megabytes(run)
    print_note(f"memory {peak:,.0f} MB; index {index / 1e6:,.1f} MB, {100 * index / size:.1f} %")
    answers = ask_peer_index(peer, library.config, kept / "search-index", QUERIES, 5)["answers"]
    print_spread(
        f"peer: search in process, {len(QUERIES)} queries",
        [answer["ms"] for answer in answers],
        "sessions only",
    )


def time_rounds(action: Callable[[], object], rounds: int) -> list[float]:
    """Return the milliseconds of each round, after one round that is not measured."""
    times = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        action()
        times.append((time.perf_counter() - begun) * 1000)
    return times[1:]


def print_spread(row_name: str, times: Sequence[float], target: str) -> None:
    """Print a row with the median of the times and a row with their 95th percentile."""
    for name, ms in (
        ("p50", statistics.median(times)),
        ("p95", statistics.quantiles(times, n=20)[-1]),
    ):
        print_row(f"{row_name}, {name}", ProcessCost(ms, 0, b""), target)
