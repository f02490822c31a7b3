"""Tests of searches on the team's server.

A search uses the index, is quick for frequent words, and ignores forged rows.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import LiteralString

import pytest

from resume_hooks.errors import ImportFailed
from resume_hooks.parts.team import fetching, read_turns, sharing, team_search
from resume_hooks.parts.team.connect import connect_to_team
from resume_hooks.parts.team.sessions import find_team_session, list_team_sessions
from resume_hooks.parts.team.team_search import build_text_search_queries, search_team
from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from resume_hooks.search.query import parse_query
from tests.builders import SESSION, assistant, conversation, session_bytes, session_id, user
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection, Server
from tests.parts.team.test_push import push_from_machine, write_on_machine
from tests.redaction.planted import (
    FORMS,
    SECRET_PLACE_NAMES,
    PlantedSecret,
    assigned_forms,
    plant_secrets,
)

TURN_COUNT = 20_000
LINE_RECORD_PLACE_NAMES = SECRET_PLACE_NAMES[:-1]
MIN_SECRET_KIND_COUNT = 145


def test_a_search_uses_the_word_index(alice: Machine, root: Connection) -> None:
    """A search among 20,000 turns uses the index and does not read every row.

    The test searches for one rare word, for two words, and for a word that no turn contains.
    """
    push_from_machine(alice, write_on_machine(alice))
    root.execute(
        "insert into team.passage select (select min(id) from team.part), g,"
        " (select id from team.scope where member = 2), now() - g * interval '1 hour',"
        " array_to_tsvector(array['w' || (g * 3 %% 9001), 'w' || (g * 7 %% 401)])"
        " from generate_series(100, %s) g",
        (TURN_COUNT,),
    )
    root.execute("analyze team.passage")

    def count_index_scans_and_read_rows() -> tuple[int, int]:
        root.execute("select pg_stat_force_next_flush()")
        row = root.execute(
            "select coalesce(sum(idx_scan) filter (where indexrelname like '%tsv_idx'), 0),"
            " coalesce((select sum(seq_tup_read) from pg_stat_user_tables where relname like 'passage%'), 0)"
            " from pg_stat_user_indexes where relname like 'passage%'"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    before = count_index_scans_and_read_rows()
    with connect_to_team("alice") as db:
        for words_asked in (["w8999"], ["w400", "w8001"], ["nowhere"]):
            search_team(words_asked, db, max_hits=1)
        db.connection.execute("select pg_stat_force_next_flush()")
    by_index, by_row = (
        after - was for after, was in zip(count_index_scans_and_read_rows(), before, strict=True)
    )
    assert by_index > 0
    assert by_row < 2 * TURN_COUNT, (
        "each of three is asked in three forms, since no turn here has a text that bears it out"
    )


def test_a_query_contains_no_search_syntax(alice: Machine) -> None:
    """A query treats quotes, operators and backslashes as text and sends no syntax to the server.

    The query also finds the parts of a name and the beginning of a word.
    """
    assert (
        build_text_search_queries(parse_query(["getUserName -redis"]))[0]
        == "((('getusernam' | ('get' & 'user' & 'name')))) & !((('redi')))"
    )
    assert build_text_search_queries(parse_query(["kumquat"]))[-1] == "((('kumquat':*)))"
    push_from_machine(alice, write_on_machine(alice))
    with connect_to_team("alice") as db:
        for words in (
            "it's 'prompt",
            "a & b | !prompt",
            "x \\ prompt <-> z :*",
            "\x00prompt naïve 日本語",
        ):
            assert all(
                query.count("'") % 2 == 0
                for query in build_text_search_queries(parse_query([words]))
            )
            search_team([words], db, max_hits=3)


def test_a_phrase_is_searched_in_every_turn_with_its_words(
    alice: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A phrase is found even if 260 newer turns contain its words separately.

    If the search stops before it has read all these turns, the result states how many turns it
    read.
    """
    talk = [user("the rule is: go test ./... before a push", uuid="p", ts=1)]
    for turn in range(260):
        talk.append(
            user(
                f"we test, then we go {turn}",
                uuid=f"q{turn}",
                parent=talk[-1]["uuid"],
                ts=2 + turn // 20,
            )
        )
    push_from_machine(alice, write_on_machine(alice, talk))
    with connect_to_team("alice") as db:
        (found,), searched = search_team(['"go test ./..."'], db, max_hits=10)
        assert (found.reference.rpartition(":")[2], searched) == ("0", 0)
        assert (
            search_team(['"go test ./..." rule'], db, max_hits=10).hits[0].reference
            == found.reference
        )
        monkeypatch.setattr(team_search, "_MAX_TURNS_READ_PER_SEARCH", 100)
        given_up = search_team(['"go test ./..."'], db, max_hits=10)
    assert given_up.hits == []
    assert 100 <= given_up.searched_turn_count < 200
    asked = build_text_search_queries(parse_query(['"go test" rule']))
    assert len(asked) == 2
    assert "rul" not in asked[1]


def test_no_known_secret_is_in_any_column(
    alice: Machine, root: Connection, server: Server, database: str
) -> None:
    """A push stores no secret that the scanner knows in any column of the database.

    The test pushes secrets of every kind in every position that the scanner's benchmark uses.
    """
    base = [*conversation(20), assistant("the end", uuid="end", ts=400)]
    lines = session_bytes(base).split(b"\n")[:-1]
    kinds = [*FORMS, *assigned_forms()]
    found = list(plant_secrets(lines, secret_count=2 * len(kinds), forms=kinds))
    for number in range(0, len(found), 40):
        name, some = session_id(number + 1), found[number : number + 40]
        path = write_on_machine(alice, [user("one", uuid="o", session_id=name)], name)
        with path.open("ab") as stream:
            stream.writelines(
                each.raw for each in some if each.place_name in LINE_RECORD_PLACE_NAMES
            )
        outputs = path.with_suffix("") / "tool-results"
        outputs.mkdir(parents=True)
        for place, each in enumerate(some):
            if each.place_name not in LINE_RECORD_PLACE_NAMES:
                (outputs / f"{place}.txt").write_bytes(each.raw)
        push_from_machine(alice, path)
    bodies = b"".join(
        zlib.decompress(row[0]) for row in root.execute("select data from team.chunk")
    )
    everything = server.dump_database(database) + bodies
    known = [each.secret for each in found if not is_unknown_to_scanner(each)]
    assert len({each.form.name for each in found}) >= MIN_SECRET_KIND_COUNT
    assert len(known) >= 2 * MIN_SECRET_KIND_COUNT
    assert [
        secret
        for secret in known
        if any(form in everything for form in list_forms_of_secret(secret))
    ] == []


def is_unknown_to_scanner(planted_secret: PlantedSecret) -> bool:
    """Check whether the scanner misses a planted secret. A separate benchmark counts the missed secrets."""
    clean = (
        redact_line(planted_secret.raw)[0]
        if planted_secret.place_name in LINE_RECORD_PLACE_NAMES
        else redact_bytes(planted_secret.raw)[0]
    )
    return any(form in clean for form in list_forms_of_secret(planted_secret.secret))


def list_forms_of_secret(secret: str) -> set[bytes]:
    """Return the forms in which a secret could be stored: unchanged, in lower case and escaped for JSON."""
    return {secret.encode(), secret.lower().encode(), json.dumps(secret)[1:-1].encode()}


@pytest.mark.parametrize(
    "damaging_sql",
    [
        "update team.chunk set sha = sha256('x') where part = %(part)s",
        "update team.chunk set raw = 66000000 where part = %(part)s",
        "update team.chunk set data = 'x' where part = %(part)s",
        "update team.chunk set first = 1, records = 1 where part = %(part)s",
        "update team.passage set at = '20000-01-01' where part = %(part)s",
        "update team.passage set at = '0044-03-15 BC' where part = %(part)s",
        "update team.passage set at = '-infinity' where part = %(part)s",
        "update team.passage set at = 'infinity' where part = %(part)s",
        "update team.part set name = '../../x' where id = %(part)s",
        "update team.session set session_id = '../../x' where owner <> 2",
        "update team.session set title = E'a\\x1b[2Jb' where owner <> 2",
    ],
)
def test_a_forged_shared_row_does_not_break_a_search(
    alice: Machine, mallory: Machine, root: Connection, damaging_sql: LiteralString
) -> None:
    """A search skips a shared row with forged values and still finds the user's own session (TH1)."""
    push_from_machine(alice, write_on_machine(alice))
    push_from_machine(mallory, write_on_machine(mallory, session=session_id(5)))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (session_id(5),))
    part = root.execute(
        "select p.id from team.part p join team.session s on s.id = p.session where owner <> 2"
    )
    root.execute(damaging_sql, {"part": part.fetchone()[0]})  # type: ignore[index]
    with connect_to_team("alice") as db:
        hits = search_team(["prompt"], db, max_hits=10).hits
        phrase = search_team(['"prompt 2"'], db, max_hits=10).hits
    assert {hit.session_id for hit in hits if hit.is_own} == {SESSION}
    assert [hit.session_id for hit in phrase if hit.is_own] == [SESSION]
    assert not any("\x1b" in hit.title for hit in hits)


def test_many_damaged_turns_hide_no_hit(alice: Machine, mallory: Machine, root: Connection) -> None:
    """A search finds the user's own session even if 120 newer turns contain damaged data."""
    push_from_machine(alice, write_on_machine(alice))
    turns = [
        user(f"prompt {number}", uuid=f"u{number}", ts=100_000 + number) for number in range(120)
    ]
    push_from_machine(mallory, write_on_machine(mallory, turns, session_id(5)))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (session_id(5),))
    root.execute(
        "update team.chunk set sha = sha256('x') where part <> (select min(id) from team.part)"
    )
    with connect_to_team("alice") as db:
        assert {hit.session_id for hit in search_team(["prompt"], db, max_hits=10).hits} == {
            SESSION
        }
        assert db.refused_row_count >= 50
        assert db.notes


@pytest.mark.parametrize(
    ("turn_count", "time_sql"),
    [
        (120, "now() + record * interval '1 second'"),
        (1_300, "now() + record * interval '1 second'"),
        (120, "now()"),
    ],
)
def test_turns_with_forged_words_hide_no_hit(
    alice: Machine, mallory: Machine, root: Connection, turn_count: int, time_sql: str
) -> None:
    """A search finds the user's own session after pages of newer turns with forged search words.

    The texts of these turns lack the words. The search counts the turns as refused and adds a note.
    """
    push_from_machine(alice, write_on_machine(alice))
    _forge_turns(mallory, root, turn_count, time_sql)
    with connect_to_team("alice") as db:
        assert SESSION in {hit.session_id for hit in search_team(["prompt"], db, max_hits=10).hits}
        assert db.refused_row_count >= 50
        assert db.notes


def test_forged_shared_sessions_do_not_hide_own_sessions(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A search finds the user's own session despite four shared sessions with 2,000 forged rows each.

    These are more rows than a search reads.
    """
    push_from_machine(alice, write_on_machine(alice))
    for number in range(5, 9):
        _forge_turns(
            mallory, root, 2_000, "now() + record * interval '1 second'", session_id(number)
        )
    with connect_to_team("alice") as db:
        assert SESSION in {hit.session_id for hit in search_team(["prompt"], db, max_hits=10).hits}


def test_a_chunk_of_line_feeds_is_searched_quickly(
    alice: Machine, mallory: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads only a few lines of a chunk that unpacks to 500,000 line feeds.

    The chunk claims to have 40 turns.
    """
    push_from_machine(alice, write_on_machine(alice))
    body = b"\n" * 500_000
    lines = 0
    read = read_turns._HitBuilder._read_numbered_snippets

    def count_and_read(
        reader: read_turns._HitBuilder,
        read_lines: list[bytes],
        line_number: int,
        *,
        is_subagent: bool,
    ) -> object:
        nonlocal lines
        lines += len(read_lines)
        return read(reader, read_lines, line_number, is_subagent=is_subagent)

    monkeypatch.setattr(read_turns._HitBuilder, "_read_numbered_snippets", count_and_read)
    _forge_session(mallory, body, len(body), [(record, "prompt") for record in range(40)])
    with connect_to_team("alice") as db:
        assert {hit.session_id for hit in search_team(["prompt"], db, max_hits=10).hits} == {
            SESSION
        }
        assert db.refused_row_count >= 40
    assert lines < 400_000


@pytest.mark.parametrize("claimed_record_count", [1, 1_001])
def test_a_session_of_empty_lines_is_refused(
    alice: Machine, mallory: Machine, monkeypatch: pytest.MonkeyPatch, claimed_record_count: int
) -> None:
    """A pull refuses a session with more lines than its row states or than an import allows."""
    monkeypatch.setattr(fetching, "MAX_LINES", 1_000)
    _forge_session(
        mallory,
        session_bytes([user("prompt", uuid="u", ts=1)]) + b"\n" * 1_000,
        claimed_record_count,
        [(0, "prompt")],
    )
    with (
        connect_to_team("alice") as db,
        pytest.raises(ImportFailed, match=r"damaged|more than 1,000 lines"),
    ):
        fetching.pull_session(find_team_session(session_id(5), db), db, alice.where)


def test_one_shared_session_does_not_displace_other_hits(
    alice: Machine, mallory: Machine, tmp_path: Path
) -> None:
    """A shared session with 150 matching turns dated in the future does not displace other hits.

    The answer still contains hits of the user and of a third member. If no other session matches,
    the search returns as many hits from the shared session as requested.
    """
    bob = Machine(tmp_path / "bobs", "bob")
    push_from_machine(alice, write_on_machine(alice))
    push_from_machine(bob, write_on_machine(bob, session=session_id(4)))
    with connect_to_team("bob") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (session_id(4),))
    said = [user("prompt 2: it is settled", uuid=f"u{number}", ts=number) for number in range(150)]
    _forge_session(
        mallory, session_bytes(said), 150, [(record, "prompt 2 settl") for record in range(150)]
    )
    with connect_to_team("alice") as db:
        for words, most in ((["prompt"], 10), (["prompt"], 100), (['"prompt 2"'], 10)):
            hits = search_team(words, db, max_hits=most).hits
            assert {hit.owner for hit in hits} == {"alice", "bob", "mallory"}, words
            assert len(hits) <= most
        assert search_team(["prompt"], db, max_hits=1).hits[0].is_own
    with connect_to_team("bob") as db:
        assert len(search_team(["settled"], db, max_hits=40).hits) == 40, (
            "where nobody else said it, there are as many as asked"
        )


def _forge_session(
    member: Machine, body: bytes, record_count: int, turns: list[tuple[int, str]]
) -> None:
    """Share a session that a member uploads with hand-written SQL.

    ``body`` is the session's only chunk. ``turns`` contains the record number of each turn, and the
    search words that the member claims for the turn.
    """
    words = [" ".join(f"'{word}':1A" for word in said.split()) for _, said in turns]
    places = [record for record, _ in turns]
    piece = (record_count, len(body), hashlib.sha256(body).digest(), zlib.compress(body), places)
    begun = "team.begin_session(%s, %s, '{}', null, false, null)"
    times = (
        "array(select now() + interval '1 hour' + n * interval '1 second' from unnest(%s::int[]) n)"
    )
    with connect_to_team(member.team.service) as db, db.transaction():
        db.run_statement(
            f"select team.append({begun}, '', 0, '', %s, %s, %s, %s, 'r', '{{}}', %s, {times}, %s)",
            (session_id(5), member.team.machine, *piece, places, words),
        )
        db.run_statement("select team.share(%s, 't', '', null)", (session_id(5),))


def _forge_turns(
    member: Machine, root: Connection, turn_count: int, time_sql: str, session: str = session_id(5)
) -> None:
    """Share a session of a member and store the search word "prompt" for turns that do not contain it."""
    said = [user(f"nothing {number}", uuid=f"u{number}", ts=number) for number in range(turn_count)]
    push_from_machine(member, write_on_machine(member, said, session))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (session,))
    lie = f"update team.passage set tsv = 'prompt:1'::tsvector, at = {time_sql}"
    hers = (
        " where part in (select p.id from team.part p join team.session s on s.id = p.session where s.session_id "
        "= %s)"
    )
    root.execute((lie + hers).encode(), (session,))


def test_own_sessions_come_before_shared_ones(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """Alice can list, name and forget her session among 50,000 shared sessions that ended later (TH2)."""
    push_from_machine(alice, write_on_machine(alice))
    root.execute(
        "insert into team.session(session_id, machine, generation, owner, scope, title, ended)"
        " select gen_random_uuid()::text, (select max(id) from team.machine), g,"
        " (select id from team.member where login = 'mallory'), (select id from team.scope where kind = 't'),"
        " 'Fix the parser', '9' from generate_series(1, 50000) g"
    )
    root.execute("analyze team.session")
    with connect_to_team("alice") as db:
        db.run_statement("set statement_timeout = '5s'", ())
        assert db.connection.execute("select team.gone(array[0])").fetchall() == [(0,)]
        assert [each.session_id for each in list_team_sessions(db, only_own=True)] == [SESSION]
        assert SESSION in {each.session_id for each in list_team_sessions(db)}
        for words in (SESSION, SESSION[:8], f"alice:{SESSION}", "alice@laptop:parser"):
            assert find_team_session(words, db).session_id == SESSION
        assert find_team_session("parser", db, only_own=True).session_id == SESSION
        assert sharing.forget_session_and_count_copies(SESSION, db, alice.where) == 1
