"""Tests with a hostile server, which answers queries with any values.

The server's answers must not change other files, control the terminal or exhaust the memory. The
stand-in server has no database, so its values can have any type. It sends hostile rows before and
after a good row.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import ImportSpec
from resume_hooks.errors import ResumeHooksError
from resume_hooks.parts.team import ancestry, background, connect, fetching, sharing, team_search
from resume_hooks.parts.team.connect import TeamRequestFailed, connect_to_team
from resume_hooks.parts.team.cursor import UploadProgress, write_upload_progress
from resume_hooks.parts.team.membership import join_team, read_project_name, record_team
from resume_hooks.parts.team.pushing import push_session
from resume_hooks.parts.team.rows import Database, parse_text
from resume_hooks.parts.team.sdk_store import PostgresSessionStore
from resume_hooks.parts.team.sessions import find_team_session, list_team_sessions
from resume_hooks.parts.team.team_file import Team, find_team_folder, read_push_failure
from resume_hooks.parts.team.verbs import PushOptions
from resume_hooks.parts.team.verbs import team as team_verb
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    session_bytes,
    session_id,
    write_session,
)
from tests.needs import REPO
from tests.parts.team.stand_in_server import Refusal, StandInServer, Value, build_notification

SESSION_BYTES = session_bytes(conversation(3))
"""The content of the file of the only valid session on the server."""

SESSION_DIGEST = hashlib.sha256(SESSION_BYTES).digest()
PACKED_SESSION = zlib.compress(SESSION_BYTES)
SESSION_CHAIN_DIGEST = hashlib.sha256(SESSION_DIGEST).digest()
LINE_COUNT = SESSION_BYTES.count(b"\n")

GOOD_ROWS: dict[str, list[Value]] = {
    "select version::text": [b"5"],
    "select least::text": [b"3"],
    "select session_user": [b"alice"],
    "\nselect s.id::text": [
        b"7", SESSION.encode(), b"alice", b"desk", b"Fix the parser", b"/src", b"h/o/r", b"2026-01-01T00:00:00Z",
        b"2026-01-02T00:00:00Z", b"", b"", b"m", str(LINE_COUNT).encode(), str(len(SESSION_BYTES)).encode(),
        b"true", b"false", None, b"1700000000.5",
    ],
    "select id::text, name": [b"3", b"", str(LINE_COUNT).encode(), SESSION_CHAIN_DIGEST],
    "select first::text, records::text, raw": [
        b"0", str(LINE_COUNT).encode(), str(len(SESSION_BYTES)).encode(), SESSION_DIGEST,
        str(len(PACKED_SESSION)).encode(),
    ],
    "select substring(data": [PACKED_SESSION],
    "select c.part::text, c.first::text, substring": [b"3", b"0", PACKED_SESSION],
    "select session::text, part::text": [b"7", b"3", b"0", b"1700000000.5", b"0.5", b"alice", b"true"],
    "select q.part::text": [
        b"3", b"0", b"", b"0", str(LINE_COUNT).encode(), str(len(SESSION_BYTES)).encode(), SESSION_DIGEST,
        str(len(PACKED_SESSION)).encode(),
    ],
    "select gone::text": [b"7"],
    "select gone from team.expire": [SESSION.encode()],
    "select team.forget": [b"1"],
    "select team.begin_session": [b"7"],
    "select records::text, head from team.append": [b"1", SESSION_CHAIN_DIGEST],
    "select c.first::text, c.records": [b"0", str(LINE_COUNT).encode(), SESSION_DIGEST, SESSION_CHAIN_DIGEST],
}  # fmt: skip
"""The row with which an honest server answers each query. The keys are the beginnings of the
queries."""

ESCAPE_SEQUENCES = b"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m"
HOSTILE_VALUES: list[Value] = [
    None, b"", b"0", b"-1", b"9223372036854775808", b"1e400", b"NaN", b"-Infinity", b"20000-01-01", b"0044-03-15 BC",
    b"../../../../precious", b"/precious", b"..", b"x\ny", b"\xff\xfe", b"\x00", ESCAPE_SEQUENCES, "\u202egnp".encode(),
    b"true", b"t", b"[]", b'["\\u001b[2J"]', b"[" * 100_000, b"9" * 70_000, b"subagents/../../x.jsonl",
    zlib.compress(bytes(1 << 24)), b"2147483647", session_id(9).upper().encode(),
]  # fmt: skip
"""The values with which a hostile server replaces a value of any column."""


REQUEST_NAMES = (
    "listed",
    "search",
    "pull",
    "gone",
    "resume",
    "forget",
    "expire",
    "push",
    "lineage",
)
READ_REQUEST_NAMES = ("listed", "search")
"""The names of the requests that must find the one good row among any number of hostile rows."""

VERSION_QUERIES = ("select version::text", "select least::text")
"""Queries for a single value. If the server sends a wrong value, nothing else is read."""

_REPLACEMENT_IDS: dict[bytes, Value] = {b"7": b"8", b"3": b"4"}


def find_good_row(query: str) -> list[Value] | None:
    """Return the row with which an honest server answers a query, or None if it returns no row."""
    return next((row for begin, row in GOOD_ROWS.items() if query.startswith(begin)), None)


@pytest.fixture
def member_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Return the home of a member of the stand-in server's team.

    A folder outside this home has a file that no answer of the server may change.
    """
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work.txt").write_text("the only copy")
    root = tmp_path / "a" / "b"
    (root / ".claude" / "projects").mkdir(parents=True)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    made = ConfigHome(
        root, root / ".claude", {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(root / ".claude")}
    )
    record_team(Team("stand-in", "alice", "11111111-2222-4333-8444-555555555555", ()), made.where)
    write_session(made.project(), SESSION, conversation(3))
    write_upload_progress(SESSION, UploadProgress(7, 0), made.where)
    return made


@contextlib.contextmanager
def connection_with_answers(
    home: ConfigHome, answer: Callable[[str], Iterable[list[Value]]]
) -> Iterator[Database]:
    """Start a stand-in server with these answers and yield a connection to it."""
    server = StandInServer(answer)
    try:
        with connect_to_team(server.write_service_file(Path(os.environ["PGSERVICEFILE"]))) as db:
            yield db
    finally:
        server.close()


def requests_to_server(home: ConfigHome) -> dict[str, Callable[[Database], object]]:
    """Return a function for each kind of request that the ``team`` verbs send to a server."""
    where = home.where

    def resume_session(db: Database) -> object:
        wish = ImportSpec(str(home.root), imports_all_records=True, force=True)
        found = find_team_session(SESSION, db)
        return fetching.resume_team_session(found, wish, db, Caller(where))

    def pull_session(db: Database) -> object:
        made = fetching.pull_session(find_team_session(SESSION, db), db, where)
        assert Path(made).read_bytes() == SESSION_BYTES
        return made

    return {
        "listed": lambda db: [each.session_id for each in list_team_sessions(db)].count(SESSION),
        "search": lambda db: team_search.search_team(["prompt"], db, max_hits=10).hits,
        "pull": pull_session,
        "gone": lambda db: fetching.remove_copies_without_read_access(db, where),
        "resume": resume_session,
        "forget": lambda db: sharing.forget_session_and_count_copies(SESSION, db, where),
        "expire": lambda db: sharing._remove_from_server([SESSION], 30, db, where),
        "push": lambda db: push_session(
            session_file(str(home.project() / f"{SESSION}.jsonl")),
            _stand_in_team(home),
            db,
            where,
            rescan=True,
        ),
        "lineage": lambda db: ancestry.fetch_server_lineage(find_team_session(SESSION, db), db),
    }


def _stand_in_team(_: ConfigHome) -> Team:
    return Team("stand-in", "alice", "11111111-2222-4333-8444-555555555555", ())


def bytes_of_other_files(root: Path) -> dict[str, bytes]:
    """Return the content of every file outside ``.claude``, except for the service file."""
    ours = {".claude"}
    return {
        str(path): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not ours & set(path.relative_to(root).parts)
        and path.name != "services.conf"
    }


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_hostile_values_do_no_harm_in_any_column(
    member_home: ConfigHome, tmp_path: Path, capfd: Any, data: st.DataObject
) -> None:
    """A hostile value in any column of an answer changes no other file and controls no terminal.

    Listing and searching still find the valid session.
    """
    before = bytes_of_other_files(tmp_path)
    column, value = data.draw(st.integers(0, 17)), data.draw(st.sampled_from(HOSTILE_VALUES))
    request_name = data.draw(st.sampled_from(sorted(requests_to_server(member_home))))

    def answer_query(query: str) -> list[list[Value]]:
        row = find_good_row(query)
        if row is None:
            return []
        # The hostile row has a different id from the good row.
        bad = [_REPLACEMENT_IDS.get(cell or b"", cell) for cell in row]
        bad[column % len(bad)] = value
        return [bad, row, bad] if "about" not in query else [row]

    try:
        with connection_with_answers(member_home, answer_query) as db:
            told = requests_to_server(member_home)[request_name](db)
    except ResumeHooksError as error:
        said = f"{error.message} {error.remedy}"
        assert request_name not in {"listed", "search", "gone"}, said
    else:
        said = repr(told).encode().decode("unicode_escape", "replace")
        if request_name == "listed":
            assert told
        if request_name == "search":
            assert told, "one bad row hides no good one"
    out = capfd.readouterr()
    assert not set("\x1b\x9b\x07\u202e") & set(said + out.out + out.err)
    assert bytes_of_other_files(tmp_path) == before


def test_the_stand_in_server_answers_prepared_queries(member_home: ConfigHome) -> None:
    """The stand-in server answers a prepared query correctly, even after other queries.

    The driver prepares queries that are run often.
    """
    ours = {"select 'a'": b"a", "select 'b'": b"b"}
    with connection_with_answers(
        member_home,
        lambda query: [[ours[query]]] if query in ours else [find_good_row(query) or [b"1"]],
    ) as db:
        told = [db.fetch_value(query, (), parse_text) for _ in range(20) for query in ours]
    assert told == ["a", "b"] * 20


@pytest.mark.parametrize("request_name", REQUEST_NAMES)
def test_hostile_rows_do_not_hide_the_good_row(
    member_home: ConfigHome, tmp_path: Path, capfd: Any, request_name: str
) -> None:
    """Listing and searching find the good row among rows with each hostile value in each column.

    No request changes another file or outputs a control character.
    """
    before = bytes_of_other_files(tmp_path)
    asked: list[str] = []

    def answer_and_record(query: str) -> list[list[Value]]:
        asked.append(query)
        row = find_good_row(query)
        return [row] if row else []

    with connection_with_answers(member_home, answer_and_record) as db:
        wanted = requests_to_server(member_home)[request_name](db)
    assert request_name not in READ_REQUEST_NAMES or has_good_session(wanted)
    query_prefixes = [
        query_prefix
        for query_prefix in GOOD_ROWS
        if any(query.startswith(query_prefix) for query in asked)
    ]
    assert all(find_good_row(query) for query in asked if query.lstrip().startswith("select")), (
        "the stand-in knows each"
    )
    for query_prefix in query_prefixes:
        for column in range(len(GOOD_ROWS[query_prefix])):
            told = _result_among_hostile_rows(member_home, request_name, query_prefix, column)
            if request_name in READ_REQUEST_NAMES and query_prefix not in VERSION_QUERIES:
                assert has_good_session(told), (query_prefix, column)
            said = repr(told).encode().decode("unicode_escape", "replace")
            out = capfd.readouterr()
            assert not set("\x1b\x9b\x07\u202e") & set(said + out.out + out.err), (
                query_prefix,
                column,
            )
            assert bytes_of_other_files(tmp_path) == before, (query_prefix, column)


@pytest.mark.parametrize("seconds_per_page", [0.0, 1.0], ids=["the same page", "ever older pages"])
def test_a_search_ends_despite_endless_pages(
    member_home: ConfigHome, seconds_per_page: float
) -> None:
    """A search ends even if the server sends an endless number of full pages."""
    pages = 0

    def answer_query(query: str) -> list[list[Value]]:
        nonlocal pages
        if not query.startswith("select session::text, part::text"):
            row = find_good_row(query)
            return [row] if row else []
        pages += 1
        at = str(1_700_000_000 - pages * seconds_per_page).encode()
        return [[b"7", b"3", b"0", at, b"0.5", b"alice", b"true"]] * 50

    with connection_with_answers(member_home, answer_query) as db:
        assert not team_search.search_team(["nowhere"], db, max_hits=10).hits
    assert pages <= 400


@pytest.mark.parametrize("request_name", ["search", "lineage"])
def test_all_answers_together_have_a_time_limit(member_home: ConfigHome, request_name: str) -> None:
    """Searching and reading a lineage stop when the time for all answers together is over.

    The results contain the data received so far, with a note that the server took too long.
    """
    connections: list[Database] = []
    count = 0

    def answer_query(query: str) -> list[list[Value]]:
        nonlocal count
        row = find_good_row(query)
        if row is None:
            return []
        count += query.startswith(("\nselect s.id", "select session::text"))
        if count > 8:
            connections[0].set_deadline(-1)
        if query.startswith("select session::text"):
            return [[*row[:3], str(1_700_000_000 - count).encode(), *row[4:]]] * 50
        if query.startswith("\nselect s.id") and request_name == "lineage":
            own = SESSION if count <= 2 else session_id(count)
            return [[row[0], own.encode(), *row[2:9], session_id(count + 1).encode(), *row[10:]]]
        return [row]

    with connection_with_answers(member_home, answer_query) as db:
        connections.append(db)
        found = requests_to_server(member_home)[request_name](db)
        assert has_good_session(found) or [row.session_id for row in found][-1] == SESSION  # type: ignore[attr-defined]
        assert (
            db.notes[-1]
            == "The server took too long. The answer contains only the results that arrived in time."
        )
    assert count <= 10


def has_good_session(result: object) -> bool:
    """Check whether a result contains the good session. The result is a count or a list of hits."""
    if isinstance(result, int):
        return result > 0
    return isinstance(result, list) and any(hit.session_id == SESSION for hit in result)


def _result_among_hostile_rows(
    home: ConfigHome, request_name: str, query_prefix: str, column: int
) -> object:
    """Return the result of a request whose answer has hostile rows before and after the good row.

    If the request fails, return its error message.
    """

    def answer_query(query: str) -> list[list[Value]]:
        row = find_good_row(query)
        if row is None or not query.startswith(query_prefix):
            return [row] if row else []
        other = [_REPLACEMENT_IDS.get(cell or b"", cell) for cell in row]
        hostile = [[*other[:column], value, *other[column + 1 :]] for value in HOSTILE_VALUES]
        return [*hostile, row, *hostile]

    try:
        with connection_with_answers(home, answer_query) as db:
            return requests_to_server(home)[request_name](db)
    except ResumeHooksError as error:
        return f"{error.message} {error.remedy}"


@pytest.mark.parametrize("value", [b"../../../../../precious", b"/precious", b"precious"])
def test_no_value_of_a_server_is_used_as_a_path(
    member_home: ConfigHome, tmp_path: Path, value: bytes
) -> None:
    """Whatever id the server sends, no request changes or removes a file that isn't ours (TC1)."""
    answers: dict[str, list[Value]] = {
        "select gone::text": [value],
        "select gone from team.expire": [value],
        "\nselect s.id::text": [value, value, *GOOD_ROWS["\nselect s.id::text"][2:]],
    }
    pulled = Path(find_team_folder(member_home.where)) / "pulled"
    pulled.mkdir(parents=True)
    (pulled / "rows.json").write_text(f'{{"7": "{SESSION}"}}')

    def answer_query(query: str) -> list[list[Value]]:
        hostile = next((row for begin, row in answers.items() if query.startswith(begin)), None)
        row = hostile or find_good_row(query)
        return [row] if row else []

    before = bytes_of_other_files(tmp_path)
    for act in requests_to_server(member_home).values():
        with (
            contextlib.suppress(ResumeHooksError),
            connection_with_answers(member_home, answer_query) as db,
        ):
            act(db)
    assert bytes_of_other_files(tmp_path) == before
    assert (tmp_path / "precious" / "work.txt").exists()


def test_unrequested_rows_change_nothing(member_home: ConfigHome) -> None:
    """Ids that the server sends without being asked change no local file, even if they are valid (TC1)."""
    other = session_id(4)
    write_upload_progress(other, UploadProgress(9, 0), member_home.where)

    def answer_query(query: str) -> list[list[Value]]:
        if query.startswith("select gone from team.expire"):
            return [[other.encode()]]
        if query.startswith("select gone::text"):
            return [[b"9"]]
        row = find_good_row(query)
        return [row] if row else []

    kept = Path(find_team_folder(member_home.where)) / "sessions" / other
    copy = Path(find_team_folder(member_home.where)) / "pulled" / "9"
    copy.mkdir(parents=True)
    (copy.parent / "rows.json").write_text(f'{{"7": "{SESSION}"}}')
    with connection_with_answers(member_home, answer_query) as db:
        assert sharing._remove_from_server([SESSION], 30, db, member_home.where) == []
        assert fetching.remove_copies_without_read_access(db, member_home.where) == []
    assert kept.is_dir()
    assert copy.is_dir()


def test_server_texts_contain_no_escape_sequences(member_home: ConfigHome) -> None:
    """A server's error message and login are stored and shown without escape sequences."""

    def refuse_query(query: str) -> list[list[Value]]:
        row = find_good_row(query)
        if row is None or "about" not in query:
            raise Refusal(ESCAPE_SEQUENCES + b"no\x1b[2J\r\n" + b"x" * 10_000)
        return [row]

    with (
        pytest.raises(TeamRequestFailed) as refused,
        connection_with_answers(member_home, refuse_query) as db,
    ):
        list_team_sessions(db)
    assert not set("\x1b\x9b\x07\r\n") & set(refused.value.message)
    assert len(refused.value.message) < 400
    names: dict[str, list[Value]] = {"select session_user": [ESCAPE_SEQUENCES]}
    server = StandInServer(lambda query: [names.get(query[:19]) or find_good_row(query) or [b"1"]])
    try:
        assert (
            join_team(
                server.write_service_file(Path(os.environ["PGSERVICEFILE"])), member_home.where
            ).login
            == ""
        )
    finally:
        server.close()


@pytest.mark.parametrize(
    ("limit_name", "message"),
    [("_MAX_SESSION_BYTES", "exceeds"), ("_MAX_FETCH_SECONDS", "too slowly")],
)
def test_fetching_a_session_has_limits(
    member_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, limit_name: str, message: str
) -> None:
    """Fetching a session stops at the limits on size and time, and leaves no temporary file."""
    monkeypatch.setattr(fetching, limit_name, -1)
    with (
        pytest.raises(TeamRequestFailed, match=message),
        connection_with_answers(
            member_home, lambda query: filter(None, [find_good_row(query)])
        ) as db,
    ):
        fetching.pull_session(find_team_session(SESSION, db), db, member_home.where)
    assert not list(Path(find_team_folder(member_home.where)).rglob("*.tmp"))


def test_the_sdk_store_has_a_time_limit(
    member_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store for the Agent SDK raises an error if the server does not answer in time."""
    asked, over = threading.Event(), threading.Event()

    def answer_nothing(query: str) -> list[list[Value]]:
        asked.set()
        over.wait(20)
        return []

    monkeypatch.setattr(connect, "_MAX_ANSWER_SECONDS", 0.5)
    server = StandInServer(answer_nothing)
    store = PostgresSessionStore(server.write_service_file(Path(os.environ["PGSERVICEFILE"])))
    try:
        with pytest.raises(TeamRequestFailed, match="does not answer"):
            asyncio.run(
                asyncio.wait_for(store.load({"project_key": "p", "session_id": SESSION}), 15)
            )
    finally:
        over.set()
        server.close()
    assert asked.is_set()


def test_a_late_answer_ends_the_connection(
    member_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an answer is late, the connection is closed so that a later query can't receive that answer.

    The error says that the database does not answer. The queue of deletions is kept.
    """
    over = threading.Event()

    def answer_nothing(query: str) -> list[list[Value]]:
        row = find_good_row(query)
        if row is None or "about" not in query:
            over.wait(20)
        return [row] if row else []

    with connection_with_answers(member_home, answer_nothing) as db:
        monkeypatch.setattr(connect, "_MAX_ANSWER_SECONDS", 0.2)
        queue = Path(find_team_folder(member_home.where)) / "forget"
        queue.mkdir(parents=True)
        for number in (3, 4):
            (queue / session_id(number)).touch()
        with pytest.raises(TeamRequestFailed, match="does not answer"):
            sharing.remove_queued_sessions_and_expired_sessions(db, member_home.where)
        over.set()
        assert db.is_closed
    assert len(list(queue.iterdir())) == 2


@pytest.mark.parametrize("is_background", [True, False])
def test_a_push_stops_at_its_time_limit(
    member_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, is_background: bool
) -> None:
    """A push stops after its time limit, even if each answer from the server arrives in time.

    For a push in the background, the reason is recorded, and the session waits for the next push.
    """
    names: list[str] = []

    def answer_slowly(query: str) -> list[list[Value]]:
        names.append(query)
        time.sleep(0.2)
        # The state on the server always differs from the file, so the push would never end without
        # a limit.
        if query.startswith("select c.first::text, c.records"):
            return [[b"0", b"1", bytes(32), bytes(32)]]
        row = find_good_row(query)
        return [row] if row else []

    server = StandInServer(answer_slowly)
    server.write_service_file(Path(os.environ["PGSERVICEFILE"]))
    project = read_project_name(conversation(1)[0]["cwd"])
    record_team(_stand_in_team(member_home)._replace(projects=(project,)), member_home.where)
    for module in (background, team_verb):
        monkeypatch.setattr(module, "MAX_PUSH_SECONDS", 0.5)
    try:
        if is_background:
            background.push_unsent(member_home.where, lambda: False)
        else:
            options = PushOptions(
                locators=(SESSION,),
                must_push_all_sessions=False,
                rescan=False,
                dry_run=False,
                as_json=True,
            )
            options.where = member_home.where
            with pytest.raises(
                TeamRequestFailed,
                match=r"for 11111111-.*\. Before it, 0 of 1 sessions were pushed$",
            ):
                team_verb.push_sessions(options)
    finally:
        server.close()
    assert len(names) < 8
    if is_background:
        failure = read_push_failure(member_home.where)
        assert failure is not None
        assert (failure.reason, failure.waiting_session_count) == (
            "The team's database does not answer",
            1,
        )


ROLLBACK_SCRIPT = """
from resume_hooks.parts.team.connect import TeamRequestFailed, connect_to_team
from resume_hooks.parts.team.sdk_store import PostgresSessionStore
from resume_hooks.parts.team.sessions import list_team_sessions
try:
    with connect_to_team("stand-in") as db, db.transaction():
        list_team_sessions(db)
except TeamRequestFailed as error:
    print(error.message)
"""


def test_the_driver_prints_no_text_of_the_server(member_home: ConfigHome) -> None:
    """If a server refuses a rollback, the driver's warning with the server's text is not printed."""

    def refuse_query(query: str) -> list[list[Value]]:
        if query == "BEGIN" or "about" in query:
            return [find_good_row(query) or [b"1"]]
        raise Refusal(ESCAPE_SEQUENCES)

    server = StandInServer(refuse_query)
    server.write_service_file(Path(os.environ["PGSERVICEFILE"]))
    try:
        done = subprocess.run(
            [sys.executable, "-c", ROLLBACK_SCRIPT], capture_output=True, text=True, check=True, timeout=60,
            env={**os.environ, **member_home.where.environ, "PYTHONPATH": str(REPO / "src")},
        )  # fmt: skip
    finally:
        server.close()
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


MEMORY_MEASUREMENT_SCRIPT = """
import resource, sys
from resume_hooks.parts.team.connect import connect_to_team
from resume_hooks.parts.team import fetching, team_search
from resume_hooks.parts.team.sdk_store import PostgresSessionStore
from resume_hooks.parts.team.sessions import list_team_sessions, find_team_session
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.derive.verbs import import_
with connect_to_team("stand-in") as db:
    list_team_sessions(db)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for act in (list_team_sessions, lambda db: team_search.search_team(["prompt"], db, max_hits=10),
            lambda db: fetching.pull_session(find_team_session(sys.argv[1], db), db, Where()),
            lambda db: fetching.remove_copies_without_read_access(db, Where())):
    try:
        with connect_to_team("stand-in") as db:
            act(db)
    except ResumeHooksError as error:
        print(error.message)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

HUGE_VALUE_BYTES = 300 * 1024 * 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="only Linux bounds it")
@pytest.mark.parametrize("answer_kind", ["a value", "many rows", "rows that fit", "a bomb"])
def test_hostile_answers_use_limited_memory(member_home: ConfigHome, answer_kind: str) -> None:
    """A hostile answer uses less than 200 MB of memory.

    The answer is a value of 300 MB, many rows, or chunks that unpack to 60 MB each.
    """
    bomb = zlib.compress(bytes(60 * 1024 * 1024))
    asked = 0

    def answer_query(query: str) -> Iterable[list[Value]]:
        nonlocal asked
        row = find_good_row(query)
        if row is None or "about" in query:
            return [row] if row else []
        asked += 1
        # The first two requests precede the measurement.
        if asked < 3:
            return [row]
        if answer_kind == "a bomb":
            packed = [bomb if value is PACKED_SESSION else value for value in row]
            size = {
                str(len(SESSION_BYTES)).encode(): b"62914560",
                str(len(PACKED_SESSION)).encode(): str(len(bomb)).encode(),
            }
            return [[size.get(value or b"", value) for value in packed]] * 20
        if answer_kind == "a value":
            return [[*row[:-1], b"x" * HUGE_VALUE_BYTES]]
        # The answer "many rows" exceeds the limit on an answer, and "rows that fit" does not.
        divisor = 4 if answer_kind == "many rows" else 16
        return [row] * (
            HUGE_VALUE_BYTES // divisor // max(1, sum(len(value or b"") for value in row))
        )

    server = StandInServer(answer_query)
    server.write_service_file(Path(os.environ["PGSERVICEFILE"]))
    try:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY_MEASUREMENT_SCRIPT, SESSION],
            capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, **member_home.where.environ, "PYTHONPATH": str(REPO / "src")},
        )  # fmt: skip
    finally:
        server.close()
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 200 * 1024, done.stdout


def test_notifications_from_the_server_are_dropped(member_home: ConfigHome) -> None:
    """Notifications from the server are dropped. The driver would collect them without a limit."""

    def answer_query(query: str) -> Iterable[list[Value]]:
        row = find_good_row(query)
        return [row] if row else []

    server = StandInServer(answer_query)
    server.asides = build_notification(b"x" * 1_000) * 100
    try:
        with connect_to_team(server.write_service_file(Path(os.environ["PGSERVICEFILE"]))) as db:
            assert list_team_sessions(db)
            assert not db.connection._notifies_backlog
    finally:
        server.close()


def test_only_one_module_reads_raw_values() -> None:
    """Only ``rows.py`` reads values from a cursor, a result or the driver's connection.

    ``sdk_store.py`` may execute statements that return no rows.
    """
    raw = {
        "execute",
        "executemany",
        "fetchone",
        "fetchmany",
        "fetchall",
        "cursor",
        "stream",
        "copy",
        "pgresult",
    }
    raw |= {"pgconn", "get_value", "notices"}
    done: dict[str, set[str]] = {}
    for path in sorted((REPO / "src" / "resume_hooks" / "parts" / "team").rglob("*.py")):
        names = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute)
        }
        done[path.name] = names & (raw | {"connection"})
    reads = done.pop("rows.py")
    assert {"execute", "pgresult", "get_value"} <= reads
    writes = done.pop("sdk_store.py")
    assert writes <= {"execute"}, (
        "what it runs has no answer: the rest goes through rows.read_rows_async"
    )
    assert {name for name, found in done.items() if found} == set()
