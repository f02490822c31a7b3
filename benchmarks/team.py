"""Measure the cost of a team on a temporary PostgreSQL server.

``python -m benchmarks.team FOLDER [RECORDS [TIMES]]`` pushes the transcripts in the folder. If they
have fewer than RECORDS records, they are pushed again. Then their words are copied on the server
until each is there TIMES times, and searches are measured again. The naive way stores each entry as
a jsonb row. Its searches use ``to_tsvector`` and row-level security.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import LiteralString

import orjson
import psycopg

from resume_hooks.errors import NotATranscript
from resume_hooks.parts.team.connect import connect_to_team
from resume_hooks.parts.team.membership import join_team
from resume_hooks.parts.team.pushing import push_session
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.team_file import Team
from resume_hooks.parts.team.team_search import build_text_search_queries, search_team
from resume_hooks.paths import Where
from resume_hooks.search.query import parse_query
from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.builders import assistant, session_bytes, user
from tests.parts.team.server import Connection, Server, find_postgres_folder

WRITER_COUNT = 8
TURN_COUNT = 60
QUERY_COUNT = 60
MAX_LINES_PER_FILE = 200_000
DAYS_OF_COPIES = 2 * 365


def main(folder: str, record_count: str = "0", copy_count: str = "1") -> int:
    """Print a row for each measurement. Return 0, or 1 if PostgreSQL is missing."""
    found = find_postgres_folder()
    if found is None:
        print("PostgreSQL is missing")
        return 1
    server = Server(found)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            _measure_team(
                server,
                _list_backlog(Path(folder), int(record_count)),
                int(copy_count),
                Path(scratch),
            )
    finally:
        server.close()
    return 0


def _list_backlog(folder: Path, records: int) -> list[Path]:
    """Return the transcripts in a folder, repeated until they have ``records`` records."""
    once = [path for path in sorted(folder.rglob("*.jsonl")) if _is_session(path)]
    record_count = sum(path.read_bytes().count(b"\n") for path in once)
    times = max(1, -(-records // max(record_count, 1)))
    print_row("records", record_count * times)
    return once * times


def _is_session(path: Path) -> bool:
    """Check whether a file is a transcript with a session id."""
    with contextlib.suppress(NotATranscript):
        return bool(session_file(str(path)))
    return False


def _measure_team(server: Server, backlog: list[Path], copy_count: int, scratch: Path) -> None:
    database = server.create_database()
    server.write_service_file(database, scratch / "services.conf")
    os.environ["PGSERVICEFILE"] = str(scratch / "services.conf")
    where = Where({"CLAUDE_CONFIG_DIR": str(scratch / ".claude"), "HOME": str(scratch)})
    with connect_to_team("admin") as db:
        db.connection.execute("select team.enter(gen_random_uuid(), 'x')")
    team = join_team("alice", where)
    with connect_to_team("alice") as db, server.connect_as_superuser(database) as root:
        raw = sum(path.stat().st_size for path in backlog)
        begun, used = time.perf_counter(), time.process_time()
        words: list[str] = []
        for path in backlog:
            _push_transcript(path, team, db, where)
            words += _list_prompt_words(path)
        took, used = time.perf_counter() - begun, time.process_time() - used
        print_row("backlog, MB raw", raw / 1e6)
        print_row("backlog, MB raw per second, one process", raw / 1e6 / took)
        print_row("backlog, MB raw per second of processor time", raw / 1e6 / used)
        print_row(
            "bytes on the server, % of raw",
            100 * _measure_tables(root, "team.chunk", "team.part", "team.session") / raw,
        )
        print_row(
            "bytes on the server, with words and their index, % of raw",
            100 * _measure_tables(root, "team.%") / raw,
        )
        _measure_appends("turn appended alone, ms", 1, team, scratch, where)
        _measure_appends(
            f"turn appended, {WRITER_COUNT} writers, ms", WRITER_COUNT, team, scratch, where
        )
        root.execute("analyze")
        rng = random.Random(1)
        for count in (1, 2, 3):
            asked = [rng.sample(words, count) for _ in range(QUERY_COUNT)]
            spans = [
                _time_call(functools.partial(search_team, said, db, max_hits=10)) for said in asked
            ]
            print_percentiles(f"search of {count} words, ms, texts read", spans)
            _print_lookup_times(db.connection, asked)
        _measure_naive_way(root, backlog, words, rng)
        if copy_count > 1:
            _copy_records(root, copy_count)
            print_row("words and their index, GB", _measure_tables(root, "team.passage%") / 1e9)
            for count in (1, 2, 3):
                _print_lookup_times(
                    db.connection, [rng.sample(words, count) for _ in range(QUERY_COUNT)]
                )


def _print_lookup_times(db: Connection, queries: list[list[str]]) -> None:
    """Print how long the server takes for each search for words."""
    query = "select * from team.find(%s::tsquery, '-infinity', 50, false, '')"
    spans = [
        _time_call(
            functools.partial(
                _run_query, db, query, (build_text_search_queries(parse_query(said))[0],)
            )
        )
        for said in queries
    ]
    print_percentiles(f"search of {len(queries[0])} words, ms, on the server", spans)


def _copy_records(root: Connection, copy_count: int) -> None:
    """Copy all words on the server, so that each is there ``copy_count`` times.

    Each copy belongs to new sessions, and the copies are spread over two years. Texts are not
    copied, because no search for words reads them.
    """
    root.execute("drop index team.passage_words")
    sessions, parts = root.execute(
        "select max(s.id), max(p.id) from team.session s, team.part p"
    ).fetchone() or (0, 0)
    for number in range(1, copy_count):
        root.execute(
            "insert into team.session(id, session_id, machine, generation, owner, scope, live, pushed)"
            " overriding system value select id + %s, left(session_id, 40) || %s, machine, generation, owner, scope,"
            " live, pushed from team.session where id <= %s",
            (number * sessions, f"-{number}", sessions),
        )
        root.execute(
            "insert into team.part(id, session, name, records, raw) overriding system value"
            " select id + %s, session + %s, name, records, raw from team.part where id <= %s",
            (number * parts, number * sessions, parts),
        )
        root.execute(
            "insert into team.passage select part + %s, record, scope,"
            " now() - %s * interval '1 day' - random() * interval '30 days', tsv from team.passage where part <= %s",
            (number * parts, (number - 1) * DAYS_OF_COPIES // copy_count, parts),
        )
    root.execute("create index passage_words on team.passage using gin(tsv) with (fastupdate=off)")
    root.execute("analyze")


def _push_transcript(path: Path, team: Team, db: Database, where: Where) -> None:
    push_session(
        SessionFile(str(uuid.uuid4()), str(path), 0.0, path.stat().st_size), team, db, where
    )


def _list_prompt_words(path: Path) -> list[str]:
    """Return words from the prompts of a transcript."""
    rows = (
        orjson.loads(line)
        for line in path.read_bytes().split(b"\n")
        if line.startswith(b'{"') and b'"user"' in line
    )
    messages = [row["message"] for row in rows if isinstance(row.get("message"), dict)]
    texts = [content for message in messages if isinstance(content := message.get("content"), str)]
    return [
        word
        for text in texts
        for word in text.split()[:40]
        if word.isascii() and word.isalpha() and len(word) > 3
    ]


def _measure_appends(name: str, writer_count: int, team: Team, scratch: Path, where: Where) -> None:
    spans: list[float] = []

    def append_turns(writer_number: int) -> None:
        path = scratch / f"{uuid.uuid4()}.jsonl"
        with connect_to_team(team.service) as db:
            for turn in range(TURN_COUNT):
                said = [
                    user(f"ask {turn} {writer_number}", uuid=str(uuid.uuid4())),
                    assistant("word " * 3_000, uuid="a"),
                ]
                with path.open("ab") as stream:
                    stream.write(session_bytes(said))
                session = SessionFile(path.stem, str(path), 0.0, path.stat().st_size)
                spans.append(_time_call(functools.partial(push_session, session, team, db, where)))

    threads = [
        threading.Thread(target=append_turns, args=(writer_number,))
        for writer_number in range(writer_count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print_percentiles(name, spans)


def _measure_naive_way(
    root: Connection, backlog: list[Path], words: list[str], rng: random.Random
) -> None:
    """Measure the naive way: each entry is a jsonb row, which a member reads under a policy.

    A transcript that is several times in the backlog is pushed once, and its rows are copied on the
    server.
    """
    once = sorted(set(backlog))
    root.execute("create schema naive; grant usage on schema naive to alice")
    root.execute("create table naive.entry(id bigserial, owner name, body jsonb, tsv tsvector)")
    refused = 0
    for path in once:
        for line in path.read_bytes().split(b"\n")[:MAX_LINES_PER_FILE]:
            if line.startswith(b"{") and len(line) < 500_000:
                text = line.decode("utf-8", "replace")
                told = (
                    "insert into naive.entry(owner, body, tsv)"
                    " values('alice', %s, to_tsvector('simple', left(%s, 200000)))"
                )
                try:
                    root.execute(told, (text, text))
                except psycopg.DataError:
                    refused += 1
    print_row("naive: entries that jsonb refused", refused)
    again = "insert into naive.entry(owner, body, tsv) select owner, body, tsv from naive.entry, generate_series(2, %s)"
    root.execute(again, (len(backlog) // len(once),))
    root.execute("create index on naive.entry using gin(tsv)")
    root.execute("alter table naive.entry enable row level security")
    root.execute("create policy p on naive.entry for select using (owner = current_user)")
    root.execute("grant select on naive.entry to alice")
    root.execute("analyze naive.entry")
    raw = sum(path.stat().st_size for path in backlog)
    print_row(
        "naive: bytes on the server, % of raw", 100 * _measure_tables(root, "naive.entry") / raw
    )
    query = (
        "select id from naive.entry where tsv @@ plainto_tsquery('simple', %s)"
        " order by ts_rank(tsv, plainto_tsquery('simple', %s)) desc limit 10"
    )
    with connect_to_team("alice") as db:
        spans = []
        for _ in range(QUERY_COUNT):
            asked = " ".join(rng.sample(words, 2))
            spans.append(
                _time_call(functools.partial(_run_query, db.connection, query, (asked, asked)))
            )
    print_percentiles("naive: search of 2 words under a policy, ms", spans)


def _run_query(db: Connection, query: LiteralString, parameters: Sequence[str]) -> object:
    return db.execute(query, parameters).fetchall()


def _measure_tables(root: Connection, *names: str) -> int:
    query = (
        "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c join pg_namespace n"
        " on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname || '.' || c.relname like any(%s)"
    )
    found = root.execute(query, (list(names),)).fetchone()
    return int(found[0]) if found else 0


def _time_call(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return 1_000 * (time.perf_counter() - begun)


def print_percentiles(row_name: str, times_ms: list[float]) -> None:
    """Print the median and the 95th percentile, in two rows."""
    ordered = sorted(times_ms)
    print_row(f"{row_name}, p50", ordered[len(ordered) // 2])
    print_row(f"{row_name}, p95", ordered[len(ordered) * 95 // 100])


def print_row(row_name: str, value: float) -> None:
    """Print a measurement."""
    print(f"{row_name:56} {value:10.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
