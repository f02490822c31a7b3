"""Tests of pushing a session.

The redacted records arrive once and in order. A rewritten file becomes a new generation, and a file
that became shorter is reported.
"""

from __future__ import annotations

import hashlib
import os
import random
import zlib
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from resume_hooks.archive import data_rules
from resume_hooks.parts.team import cursor, sharing
from resume_hooks.parts.team.background import find_pushable_sessions
from resume_hooks.parts.team.connect import TeamRequestFailed, connect_to_team
from resume_hooks.parts.team.cursor import write_upload_progress
from resume_hooks.parts.team.fetching import (
    pull_session,
    read_pulled_sessions,
    remove_copies_without_read_access,
)
from resume_hooks.parts.team.pushing import PushResult, has_unsent_data, push_session
from resume_hooks.parts.team.sessions import find_team_session
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.load_rules import token_rules
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    SESSION,
    Record,
    assistant,
    conversation,
    custom_title,
    result,
    session_bytes,
    session_id,
    user,
    write_session,
)
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection, Server
from tests.redaction.planted import random_chars

CHILD_ID = session_id(2)
TURN_RECORDS = [custom_title("Fix the parser"), *conversation(4)]


def write_on_machine(
    machine: Machine, content: Sequence[Record] = TURN_RECORDS, session: str = SESSION
) -> Path:
    """Write a session's file on a machine and return its path."""
    return Path(write_session(machine.home.project(), session, content))


def push_from_machine(machine: Machine, path: Path, **options: bool) -> PushResult:
    """Push a session's file from a machine and return the result."""
    with connect_to_team(machine.team.service) as db:
        return push_session(session_file(str(path)), machine.team, db, machine.where, **options)


def read_contents_on_server(root: Connection, login: str = "alice") -> dict[str, bytes]:
    """Return the content of a member's only session on the server, keyed by the machine that pushed it.

    The function also checks the digests and the record numbers of the chunks.
    """
    query = """select a.label, p.head, c.sha, c.data, c.first, p.records, c.records from team.session s
      join team.machine a on a.id = s.machine join team.member m on m.id = s.owner
      join team.part p on p.session = s.id and p.name = '' join team.chunk c on c.part = p.id
      where s.live and m.login = %s order by a.label, c.first"""
    found: dict[str, bytes] = {}
    chains: dict[str, tuple[bytes, int]] = {}
    for label, head, sha, data, first, records, lines in root.execute(query, (login,)):
        body = zlib.decompress(data)
        chain, count = chains.get(label, (b"", 0))
        assert (hashlib.sha256(body).digest(), first, body.count(b"\n")) == (sha, count, lines)
        chains[label] = hashlib.sha256(chain + sha).digest(), count + lines
        found[label] = found.get(label, b"") + body
        if chains[label][1] == records:
            assert chains[label][0] == head
    return found


def compute_expected_content(path: Path) -> bytes:
    """Return the content that the server must have for a file: its complete lines, redacted."""
    return b"".join(redact_line(line)[0] + b"\n" for line in path.read_bytes().split(b"\n")[:-1])


def append_records(path: Path, *records: object) -> None:
    """Append records to a session's file, as the client does."""
    with path.open("ab") as stream:
        stream.write(session_bytes(records))  # type: ignore[arg-type]


def test_new_data_is_sent_once(alice: Machine, root: Connection) -> None:
    """The first push sends all records, and later pushes send only the appended records.

    If the upload progress is lost, the next push sends no record twice.
    """
    path = write_on_machine(alice)
    assert has_unsent_data(session_file(str(path)), alice.where)
    first = push_from_machine(alice, path)
    assert (first.result, first.record_count, first.title) == (
        "sent",
        len(TURN_RECORDS),
        "Fix the parser",
    )
    assert not has_unsent_data(session_file(str(path)), alice.where)
    append_records(path, user("and the lexer?", uuid="late", ts=500))
    assert has_unsent_data(session_file(str(path)), alice.where)
    assert push_from_machine(alice, path).record_count == 1
    assert read_contents_on_server(root) == {"laptop": compute_expected_content(path)}
    write_upload_progress(SESSION, cursor.UploadProgress(), alice.where)
    assert push_from_machine(alice, path).result == "unchanged"
    with path.open("ab") as stream:
        stream.write(b'{"type":"user","torn')
    assert push_from_machine(alice, path).result == "unchanged"
    assert root.execute("select count(*) from team.chunk").fetchone() == (2,)
    assert root.execute("select rules, secrets from team.chunk limit 1").fetchone() == (
        token_rules().version,
        {},
    )


def test_a_last_line_without_its_line_feed_is_sent(alice: Machine, root: Connection) -> None:
    """A push sends the last line even if its line feed is missing, as in an export.

    The next push sends records that are appended after that line.
    """
    path = write_on_machine(alice)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert push_from_machine(alice, path).record_count == len(TURN_RECORDS)
    assert read_contents_on_server(root) == {"laptop": whole}
    assert not has_unsent_data(session_file(str(path)), alice.where)
    for more in (b"", b"\n"):
        path.write_bytes(whole[:-1] + more)
        assert not has_unsent_data(session_file(str(path)), alice.where)
        assert push_from_machine(alice, path).result == "unchanged"
        write_upload_progress(SESSION, cursor.UploadProgress(), alice.where)
        assert push_from_machine(alice, path).result == "unchanged"
    path.write_bytes(whole[:-1])
    assert push_from_machine(alice, path).result == "unchanged"
    path.write_bytes(whole)
    append_records(path, user("and then?", uuid="late", ts=500))
    assert (push_from_machine(alice, path).record_count, read_contents_on_server(root)) == (
        1,
        {"laptop": compute_expected_content(path)},
    )
    path.write_bytes(whole[:-1])
    with path.open("ab") as stream:
        stream.write(b' {"type":"user"}\n')
    assert push_from_machine(alice, path).result == "replaced"


def test_a_rewritten_file_is_a_new_generation(alice: Machine, root: Connection) -> None:
    """A push of a rewritten file creates a new generation. The old generation is kept but no longer live.

    A push of a file that became shorter changes nothing on the server.
    """
    path = write_on_machine(alice)
    push_from_machine(alice, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 1])
    assert push_from_machine(alice, path).result == "shorter"
    assert read_contents_on_server(root) == {"laptop": whole}
    path.write_bytes(whole.replace(b"prompt 4", b"conundrum"))
    assert push_from_machine(alice, path).result == "replaced"
    assert read_contents_on_server(root) == {"laptop": compute_expected_content(path)}
    assert root.execute("select generation, live from team.session order by 1").fetchall() == [
        (0, False),
        (1, True),
    ]
    path.write_bytes(whole)
    assert sharing.queue_replacement_of_server_copy(SESSION, alice.where)
    assert push_from_machine(alice, path).result == "replaced"
    assert root.execute("select generation from team.session").fetchall() == [(2,)]


def test_a_session_of_two_machines_has_two_rows(
    alice: Machine, desk: Machine, root: Connection
) -> None:
    """If two machines push the same session, the server keeps both copies.

    A locator finds the copy that was continued last.
    """
    here, there = (
        write_on_machine(alice),
        write_on_machine(desk, [*TURN_RECORDS[:-2], user("elsewhere", uuid="else", ts=900)]),
    )
    push_from_machine(alice, here)
    push_from_machine(desk, there)
    push_from_machine(alice, here)
    assert read_contents_on_server(root) == {
        "laptop": compute_expected_content(here),
        "desk": compute_expected_content(there),
    }
    with connect_to_team("alice") as db:
        assert find_team_session(SESSION[:8], db).machine == "desk"


def test_secrets_and_images_are_not_pushed(
    alice: Machine, root: Connection, server: Server, database: str
) -> None:
    """A push redacts secrets in lines, titles, sub-agents and large outputs.

    A push replaces an image with a short text and does not send binary files.
    """
    secret = "ghp_" + random_chars(random.Random(3), 36)
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 400},
    }
    told = [
        custom_title(f"Use {secret}"),
        user([{"type": "text", "text": f"key {secret}"}, image], uuid="a", ts=1),
        assistant("a reply about kumquats", uuid="b", parent="a", ts=2),
        user(
            [result("t", [image])],
            uuid="c",
            parent="b",
            ts=3,
            toolUseResult={"file": {"base64": "QUJD" * 400}},
        ),
    ]
    path = write_on_machine(alice, told)
    beside = path.with_suffix("")
    (beside / "tool-results").mkdir(parents=True)
    (beside / "tool-results" / "x.txt").write_text(f"export SOUGHT_TOKEN={secret}\nplain\n")
    (beside / "tool-results" / "x.bin").write_bytes(b"\xff\xfe\x00binary")
    (beside / "subagents").mkdir()
    (beside / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([user(f"task {secret}", uuid="s", ts=1)])
    )
    pushed = push_from_machine(alice, path)
    assert pushed.secret_counts_by_kind["github-pat"] == 4
    names = root.execute("select name from team.part order by 1").fetchall()
    assert [name for (name,) in names] == ["", "subagents/agent-a1.jsonl", "tool-results/x.txt"]
    everything = server.dump_database(database) + b"".join(
        zlib.decompress(row[0]) for row in root.execute("select data from team.chunk")
    )
    assert secret[8:20].encode() not in everything
    assert secret[4:20].lower().encode() not in everything
    assert b"QUJDQUJD" not in everything
    assert everything.count(b"[image left out: 1,200 bytes]") == 2
    lines = read_contents_on_server(root)["laptop"].split(b"\n")
    assert orjson.loads(lines[3])["toolUseResult"]["file"]["base64"] == ""
    assert b"kumquat" in everything, "the words of texts without secrets are stored"


def test_a_failing_scanner_stops_the_push(
    alice: Machine, root: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the scanner fails, the push stops before it sends any text."""
    path = write_on_machine(alice)

    def fail(_: Redactor, __: bytes) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(Redactor, "redact_line", fail)
        with pytest.raises(RuntimeError):
            push_from_machine(alice, path)
    assert root.execute("select count(*) from team.chunk").fetchone() == (0,)
    assert push_from_machine(alice, path).result == "sent"


def test_a_forgotten_session_is_removed_everywhere(
    alice: Machine, desk: Machine, root: Connection
) -> None:
    """``forget`` removes both machines' copies of a session from every table. Later pushes are refused.

    The next pull removes the local copies of the session.
    """
    path = write_on_machine(alice)
    push_from_machine(alice, path)
    push_from_machine(desk, write_on_machine(desk))
    with connect_to_team("alice") as db:
        copy = pull_session(find_team_session("Fix the parser", db), db, desk.where)
        assert Path(copy).read_bytes() == compute_expected_content(path)
        assert sharing.forget_session_and_count_copies(SESSION, db, alice.where) == 2
        assert remove_copies_without_read_access(db, desk.where) == [SESSION]
    assert not os.path.exists(copy)
    assert read_pulled_sessions(desk.where) == {}
    for table in ("session", "part", "chunk", "passage"):
        assert root.execute(f"select count(*) from team.{table}".encode()).fetchone() == (0,)
    assert not has_unsent_data(session_file(str(path)), alice.where)
    assert push_from_machine(alice, path).result == "forgotten"
    assert has_unsent_data(session_file(str(path)), desk.where)
    assert push_from_machine(desk, path).result == "forgotten"
    assert not has_unsent_data(session_file(str(path)), desk.where)


def test_a_deletion_during_an_outage_reaches_the_server(alice: Machine, root: Connection) -> None:
    """If a pushed session is deleted while the server is unreachable, the next push removes it there."""
    path = write_on_machine(alice)
    assert sharing.queue_deletion(SESSION, alice.where) == ""
    push_from_machine(alice, path)
    assert "team forget" in sharing.queue_deletion(SESSION, alice.where)
    path.unlink()
    with connect_to_team("alice") as db:
        assert sharing.forget_queued_sessions(db, alice.where) == [SESSION]
        assert sharing.forget_queued_sessions(db, alice.where) == []
    assert root.execute("select session_id from team.forgotten").fetchall() == [(SESSION,)]


def test_a_scrub_applies_to_all_machines_of_a_user(
    alice: Machine, desk: Machine, root: Connection
) -> None:
    """After a scrub on one machine, the server refuses unscrubbed copies from the user's other machines.

    The server also refuses a copy under another id. After a scrub on the other machine, that
    machine can push again (TH7).
    """
    here, there = (
        write_on_machine(alice),
        write_on_machine(desk, [*TURN_RECORDS, user("on the desk", uuid="desk", ts=900)]),
    )
    push_from_machine(alice, here)
    push_from_machine(desk, there)
    elsewhere = session_id(7)
    other = write_on_machine(desk, conversation(2), elsewhere)
    first = root.execute("select min(id) from team.session").fetchone()
    assert first
    write_upload_progress(elsewhere, cursor.UploadProgress(0, first[0]), desk.where)
    push_from_machine(desk, other)
    assert sharing.queue_replacement_of_server_copy(SESSION, alice.where)
    here.write_bytes(here.read_bytes().replace(b"prompt 2", b"[removed]"))
    assert push_from_machine(alice, here).result in {"sent", "replaced"}
    assert read_contents_on_server(root) == {"laptop": compute_expected_content(here)}
    assert push_from_machine(desk, there).result == "scrubbed"
    assert push_from_machine(desk, other).result == "scrubbed", (
        "a copy under another id has it, too"
    )
    there.write_bytes(there.read_bytes().replace(b"prompt 2", b"[removed]"))
    assert sharing.queue_replacement_of_server_copy(SESSION, desk.where)
    assert push_from_machine(desk, there).result in {"sent", "replaced"}
    assert push_from_machine(alice, here).result == "unchanged", "the first one's stays"
    assert read_contents_on_server(root) == {
        "laptop": compute_expected_content(here),
        "desk": compute_expected_content(there),
    }


def test_a_deleted_session_is_removed_from_the_server_after_the_retention_period(
    alice: Machine, desk: Machine, root: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted session is removed from the server after the employer's retention period.

    The session may be pushed again. A copy that another machine pushed stays on the server.
    """
    path, whole = write_on_machine(alice), write_on_machine(alice).read_bytes()
    push_from_machine(alice, path)
    push_from_machine(desk, write_on_machine(desk))
    push_from_machine(alice, write_on_machine(alice, conversation(1), CHILD_ID))
    root.execute("update team.session set ended = now()::text where session_id = %s", (CHILD_ID,))
    with connect_to_team("alice") as db:
        monkeypatch.setattr(sharing, "read_managed_retention", lambda: ("/etc/x", 30))
        assert sharing.remove_queued_sessions_and_expired_sessions(db, alice.where) == []
        path.unlink()
        path.with_name(f"{CHILD_ID}.jsonl").unlink()
        monkeypatch.setattr(sharing, "read_managed_retention", lambda: ("/etc/x", 0))
        assert sharing.remove_queued_sessions_and_expired_sessions(db, alice.where) == []
        monkeypatch.setattr(sharing, "read_managed_retention", lambda: ("/etc/x", 30))
        assert sharing.remove_queued_sessions_and_expired_sessions(db, alice.where) == [SESSION]
        assert sharing.remove_queued_sessions_and_expired_sessions(db, alice.where) == []
    left = "select s.session_id, a.label from team.session s join team.machine a on a.id = s.machine order by s.id"
    assert root.execute(left).fetchall() == [(SESSION, "desk"), (CHILD_ID, "laptop")]
    path.write_bytes(whole)
    assert push_from_machine(alice, path).result == "sent"
    # If a scrubbed session has no file on this machine, the copy on the server is removed.
    path.unlink()
    assert sharing.queue_replacement_of_server_copy(SESSION, alice.where)
    with connect_to_team("alice") as db:
        assert sharing.remove_queued_sessions_and_expired_sessions(db, alice.where) == [SESSION]


def test_an_unreachable_or_full_server_is_reported(
    alice: Machine, server: Server, root: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push to an unreachable or full server fails with a clear error.

    The next push sends everything.
    """
    path = write_on_machine(alice)
    services = Path(os.environ["PGSERVICEFILE"])
    told = services.read_text()
    services.write_text(told.replace(f"port={server.port}", "port=1"))
    with pytest.raises(TeamRequestFailed, match="The team's database"):
        push_from_machine(alice, path)
    services.write_text(told)
    root.execute(
        "create function full_disk() returns trigger language plpgsql as"
        " $$ begin raise exception 'could not extend file' using errcode='53100'; end $$"
    )
    root.execute(
        "create trigger full_disk before insert on team.chunk for each row execute function full_disk()"
    )
    with pytest.raises(TeamRequestFailed, match="could not extend file") as failed:
        push_from_machine(alice, path)
    assert (failed.value.sqlstate, failed.value.remedy) == ("53100", "The server's disk is full.")
    root.execute("drop trigger full_disk on team.chunk")
    assert push_from_machine(alice, path).result == "sent"
    assert read_contents_on_server(root) == {"laptop": compute_expected_content(path)}


def test_a_data_rule_prevents_every_push(alice: Machine) -> None:
    """If a data rule forbids sharing, neither a command nor a background push sends a session."""
    path = write_on_machine(alice)
    data_rules.store_data_rules(["zdr"], alice.where)
    with pytest.raises(TeamRequestFailed, match=r"data rules \(zdr\)"):
        push_from_machine(alice, path)
    assert find_pushable_sessions(alice.team, alice.where) == []
