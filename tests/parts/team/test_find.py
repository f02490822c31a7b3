"""The search on the server: by its index, quickly for common words, and nothing planted in what it searches."""

from __future__ import annotations

import json
import zlib

import pytest

from resume_hooks.parts.team import finding
from resume_hooks.parts.team.connect import connected
from resume_hooks.parts.team.finding import asked_of, find
from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from resume_hooks.search.query import parse
from tests.builders import assistant, conversation, session_bytes, session_id, user
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection, Server
from tests.parts.team.test_push import sent, written
from tests.redaction.planted import FORMS, PLACED, Planted, assigned_forms, planted

MANY = 20_000
LINES = PLACED[:-1]
KINDS = 145


def test_it_uses_its_index(alice: Machine, root: Connection) -> None:
    """Of twenty thousand turns a rare word, two and none are found by the index of words, not row by row."""
    sent(alice, written(alice))
    root.execute(
        "insert into team.passage select (select min(id) from team.part), g,"
        " (select id from team.scope where member = 2), now() - g * interval '1 hour',"
        " array_to_tsvector(array['w' || (g * 3 %% 9001), 'w' || (g * 7 %% 401)])"
        " from generate_series(100, %s) g",
        (MANY,),
    )
    root.execute("analyze team.passage")

    def scans() -> tuple[int, int]:
        root.execute("select pg_stat_force_next_flush()")
        row = root.execute(
            "select coalesce(sum(idx_scan) filter (where indexrelname like '%tsv_idx'), 0),"
            " coalesce((select sum(seq_tup_read) from pg_stat_user_tables where relname like 'passage%'), 0)"
            " from pg_stat_user_indexes where relname like 'passage%'"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    before = scans()
    with connected("alice") as db:
        for words_asked in (["w8999"], ["w400", "w8001"], ["nowhere"]):
            find(words_asked, db, most=1)
        db.connection.execute("select pg_stat_force_next_flush()")
    by_index, by_row = (after - was for after, was in zip(scans(), before, strict=True))
    assert by_index > 0
    assert by_row < MANY


def test_a_query_is_never_syntax(alice: Machine) -> None:
    """Quotes, operators and backslashes are words or nothing; parts of names and beginnings are asked for."""
    assert (
        asked_of(parse(["getUserName -redis"]))[0] == "((('getusernam' | ('get' & 'user' & 'name')))) & !((('redi')))"
    )
    assert asked_of(parse(["kumquat"]))[-1] == "((('kumquat':*)))"
    sent(alice, written(alice))
    with connected("alice") as db:
        for words in ("it's 'prompt", "a & b | !prompt", "x \\ prompt <-> z :*", "\x00prompt naïve 日本語"):
            assert all(query.count("'") % 2 == 0 for query in asked_of(parse([words])))
            find([words], db, most=3)


def test_a_phrase_is_sought_in_every_turn_with_its_words(alice: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind hundreds that have the words apart, said in one second; where it is not, that is said."""
    talk = [user("the rule is: go test ./... before a push", uuid="p", ts=1)]
    for turn in range(260):
        talk.append(user(f"we test, then we go {turn}", uuid=f"q{turn}", parent=talk[-1]["uuid"], ts=2 + turn // 20))
    sent(alice, written(alice, talk))
    with connected("alice") as db:
        (found,), searched = find(['"go test ./..."'], db, most=10)
        assert (found.reference.rpartition(":")[2], searched) == ("0", 0)
        assert find(['"go test ./..." rule'], db, most=10).hits[0].reference == found.reference
        monkeypatch.setattr(finding, "_READ", 100)
        given_up = find(['"go test ./..."'], db, most=10)
    assert given_up.hits == []
    assert 100 <= given_up.searched < 200
    asked = asked_of(parse(['"go test" rule']))
    assert len(asked) == 2
    assert "rul" not in asked[1]


def test_planted_secrets(alice: Machine, root: Connection, server: Server, database: str) -> None:
    """Of every kind and in every place that the scanner is measured by: none that it knows is in any column."""
    base = [*conversation(20), assistant("the end", uuid="end", ts=400)]
    lines = session_bytes(base).split(b"\n")[:-1]
    kinds = [*FORMS, *assigned_forms()]
    found = list(planted(lines, places=2 * len(kinds), forms=kinds))
    for number in range(0, len(found), 40):
        name, some = session_id(number + 1), found[number : number + 40]
        path = written(alice, [user("one", uuid="o", session_id=name)], name)
        with path.open("ab") as stream:
            stream.writelines(each.raw for each in some if each.place in LINES)
        outputs = path.with_suffix("") / "tool-results"
        outputs.mkdir(parents=True)
        for place, each in enumerate(some):
            if each.place not in LINES:
                (outputs / f"{place}.txt").write_bytes(each.raw)
        sent(alice, path)
    bodies = b"".join(zlib.decompress(row[0]) for row in root.execute("select data from team.chunk"))
    everything = server.dump(database) + bodies
    known = [each.secret for each in found if not left(each)]
    assert len({each.form.name for each in found}) >= KINDS
    assert len(known) >= 2 * KINDS
    assert [secret for secret in known if any(form in everything for form in forms(secret))] == []


def left(each: Planted) -> bool:
    """Whether the scanner leaves a secret where it is: it is measured elsewhere."""
    clean = redact_line(each.raw)[0] if each.place in LINES else redact_bytes(each.raw)[0]
    return any(form in clean for form in forms(each.secret))


def forms(secret: str) -> set[bytes]:
    """A secret as it was, as words have it, and as JSON has it."""
    return {secret.encode(), secret.lower().encode(), json.dumps(secret)[1:-1].encode()}
