"""Tests of what the team's database refuses.

The tests cover a member's attacks on each grant, the requests of a role that is not a member, and a
server with a wrong name.
"""

from __future__ import annotations

import os
import re
import ssl
import zlib
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from resume_hooks.errors import ImportFailed, UsageError
from resume_hooks.parts.team import connect, sharing
from resume_hooks.parts.team.connect import (
    TeamRequestFailed,
    connect_to_team,
    convert_driver_errors,
)
from resume_hooks.parts.team.cursor import UploadProgress, write_upload_progress
from resume_hooks.parts.team.fetching import pull_session
from resume_hooks.parts.team.membership import join_team
from resume_hooks.parts.team.pushing import has_unsent_data
from resume_hooks.parts.team.sessions import find_team_session, list_team_sessions
from resume_hooks.parts.team.team_file import read_team
from resume_hooks.parts.team.team_search import SearchScope, search_team
from resume_hooks.sessions.locate import session_file
from tests.builders import ConfigHome, session_bytes, session_id, user
from tests.parts.team.conftest import Machine
from tests.parts.team.server import STRANGER_ROLE, Connection, Server
from tests.parts.team.test_push import push_from_machine, write_on_machine

VISIBLE_TABLES = ("session", "part", "chunk", "grant_", "forgotten", "project", "project_member")
"""Tables in which a member may read only rows that concern that member."""

FORBIDDEN_STATEMENTS = (
    "select 1 from team.passage",
    "select 1 from team.passage_other",
    "select uuid from team.machine",
    "insert into team.member(login) values('evil')",
    "update team.member set admin = true",
    "update team.session set scope = 1",
    "delete from team.session",
    "insert into team.chunk select * from team.chunk",
    "update team.chunk set data = ''",
    "delete from team.audit",
    "insert into team.audit(act) values('innocent')",
    "delete from team.forgotten",
    "insert into team.grant_ values('x', 1, 2)",
    "insert into team.project_member values(1, 2)",
    "insert into team.scope(kind, member) values('m', 2)",
    "drop table team.session",
    "create table team.mine(x int)",
    "create or replace function team.me() returns int language sql as 'select 1'",
    "alter table team.session disable row level security",
    "set role rh_owner",
    "set session authorization alice",
    "select team.retain(1)",
    "select team.project_admit('h/o/r', 'mallory', true)",
    "select team.begin_session('x', (select gen_random_uuid()), '{}', null, false, null)",
)
"""Statements that the database must refuse to a member."""


@pytest.fixture
def private_session(alice: Machine) -> Path:
    """Push a private session of Alice, and return its file."""
    path = write_on_machine(alice)
    push_from_machine(alice, path)
    with connect_to_team("alice") as db:
        assert db.connection.execute("select team.project_add('h/o/r')").fetchone() == ("",)
    return path


def test_a_member_cannot_bypass_the_functions(
    private_session: Path, mallory: Machine, root: Connection
) -> None:
    """A member cannot bypass the functions of the database.

    Direct writes, and reads of tables that members may not read, are refused, and nothing changes.
    """
    before = root.execute("select count(*), min(scope) from team.session").fetchone()
    for attack in FORBIDDEN_STATEMENTS:
        with pytest.raises(TeamRequestFailed), connect_to_team("mallory") as db:
            db.connection.execute(attack.encode())
        assert root.execute("select count(*), min(scope) from team.session").fetchone() == before, (
            attack
        )


def test_a_member_cannot_reach_private_data_of_others(
    private_session: Path, mallory: Machine, root: Connection
) -> None:
    """A member can't see another member's private rows, words or forgotten ids.

    Nor can the member share, forget, extend or copy the other member's session.
    """
    row = root.execute("select id from team.session").fetchone()
    assert row is not None
    with connect_to_team("alice") as db:
        sharing.forget_session_and_count_copies(
            "11111111-1111-4111-8111-999999999999", db, mallory.where
        )
    with connect_to_team("mallory") as db:
        for table in VISIBLE_TABLES:
            assert db.connection.execute(f"select * from team.{table}".encode()).fetchall() == [], (
                table
            )
        assert {
            login
            for (login,) in db.connection.execute("select distinct login::text from team.audit")
        } == {"mallory"}
        assert list_team_sessions(db) == []
        assert search_team(["prompt"], db, max_hits=10).hits == []
        assert (
            sharing.forget_session_and_count_copies(single_session_id(root), db, mallory.where) == 0
        )
        assert db.connection.execute("select team.gone(array[%s])", row).fetchone() == row
    attempts = (
        "select team.share((select '11111111-1111-4111-8111-111111111111'), 't', '', null)",
        "select team.append(%(row)s, '', 9, '', 1, 1, sha256(''), '', '', '{}', '{}', '{}', '{}')",
        "select team.share('11111111-1111-4111-8111-111111111111', 'g', 'mallory', null)",
    )
    for attempt in attempts:
        with pytest.raises(TeamRequestFailed), connect_to_team("mallory") as db:
            db.connection.execute(attempt.encode(), {"row": row[0]})
    # If Mallory names another member's session as the base of a new session, no data is copied.
    with connect_to_team("mallory") as db:
        told = (mallory.team.machine, row[0])
        made = db.connection.execute(
            "select team.begin_session('y', %s, '{}', null, false, %s)", told
        ).fetchone()
        assert (
            db.connection.execute("select * from team.part where session = %s", made).fetchall()
            == []
        )
    assert root.execute(
        "select count(*) from team.session where owner = 2 and live"
    ).fetchone() == (1,)


def test_retention_removes_old_sessions_completely(
    private_session: Path, alice: Machine, mallory: Machine, root: Connection
) -> None:
    """Retention removes the texts and search words of sessions that ended too long ago.

    The date of the push makes no difference. Only an admin may run retention.
    """
    push_from_machine(mallory, write_on_machine(mallory, session=session_id(3)))
    ended = "update team.session set ended = case session_id when %s then '2020-01-01T00:00:00Z' else '' end"
    root.execute(ended.encode(), (private_session.stem,))
    old = "team.passage_201901 partition of team.passage for values from ('2019-01-01') to ('2019-02-01')"
    root.execute(f"create table {old}; alter table team.passage_201901 owner to rh_owner".encode())
    root.execute(f"drop table team.passage_{datetime.now(UTC):%Y%m}".encode())
    with pytest.raises(TeamRequestFailed), connect_to_team("mallory") as db:
        db.connection.execute("select team.retain(30)")
    with connect_to_team("admin") as db:
        assert db.connection.execute("select team.retain(36500)").fetchone() == (0,)
        assert db.connection.execute("select team.retain(30)").fetchone() == (1,)
    assert root.execute("select session_id from team.session").fetchall() == [(session_id(3),)]
    left = "select count(distinct session), (select count(distinct part) from team.passage) from team.part"
    assert root.execute(left.encode()).fetchone() == (1, 1)
    assert root.execute("select to_regclass('team.passage_201901')").fetchone() == (None,)
    now = f"team.passage_{datetime.now(UTC):%Y%m}"
    assert root.execute("select to_regclass(%s)::text", (now,)).fetchone() == (now,)
    assert has_unsent_data(session_file(str(private_session)), alice.where) is False


def test_a_chunk_that_unpacks_to_a_gigabyte_is_refused(
    private_session: Path, alice: Machine, root: Connection
) -> None:
    """A pull refuses a chunk whose stated unpacked size is 1 GB, before it unpacks the chunk."""
    bomb = zlib.compress(bytes(1 << 20))
    for raw in (1 << 20, 1 << 30):
        root.execute("update team.chunk set data = %s, raw = %s", (bomb, raw))
        with connect_to_team("alice") as db, pytest.raises(ImportFailed, match="damaged"):
            pull_session(list_team_sessions(db)[0], db, alice.where)


def single_session_id(root: Connection) -> str:
    """Return the id of the only session on the server."""
    found_row = root.execute("select session_id from team.session").fetchone()
    return str(found_row[0]) if found_row else ""


def test_a_share_ends_when_it_is_withdrawn(
    private_session: Path, alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A member sees a shared session until the share ends or is withdrawn.

    The session is shared with one member, with the team, and with a project.
    """

    def count_visible_sessions_and_turns() -> tuple[int, int]:
        with connect_to_team("mallory") as db:
            return len(list_team_sessions(db)), len(search_team(["prompt"], db, max_hits=10).hits)

    def change_audience(*audience: object) -> None:
        with connect_to_team("alice") as db:
            session = find_team_session("Fix the parser", db)
            if audience:
                sharing.share_session(session, str(audience[0]), None, db)
            else:
                sharing.unshare_session(session, db)

    assert count_visible_sessions_and_turns() == (0, 0)
    change_audience("mallory")
    assert count_visible_sessions_and_turns() == (1, 4)
    with connect_to_team("mallory") as db:
        assert (
            list_team_sessions(db)[0].is_own,
            search_team(["prompt"], db, max_hits=1).hits[0].is_own,
        ) == (False, False)
        assert search_team(["prompt"], db, SearchScope(only_own=True), max_hits=1).hits == []
    root.execute("update team.grant_ set until = now() - interval '1 second'")
    assert count_visible_sessions_and_turns() == (0, 0)
    change_audience("team")
    assert count_visible_sessions_and_turns() == (1, 4)
    change_audience()
    assert count_visible_sessions_and_turns() == (0, 0)
    with pytest.raises(TeamRequestFailed, match="not in that project"):
        change_audience("project")
    root.execute("update team.session set project = 'h/o/r'")
    change_audience("project")
    assert count_visible_sessions_and_turns() == (0, 0)
    with connect_to_team("mallory") as db:
        assert db.connection.execute("select team.project_add('h/o/r')").fetchone() == ("alice",)
    with connect_to_team("alice") as db:
        db.connection.execute("select team.project_admit('h/o/r', 'mallory', true)")
    assert count_visible_sessions_and_turns() == (1, 4)
    with connect_to_team("alice") as db:
        db.connection.execute("select team.project_admit('h/o/r', 'mallory', false)")
    assert count_visible_sessions_and_turns() == (0, 0)
    acts = [
        act
        for (act,) in root.execute("select act from team.audit where login = 'alice' order by id")
    ]
    assert acts == ["enter", "share", "share", "share", "share", "admit", "admit"]
    with pytest.raises(TeamRequestFailed, match="no such member"):
        change_audience("nobody-here")


def test_strangers_and_former_members_are_refused(
    private_session: Path, mallory: Machine, root: Connection, tmp_path: Path
) -> None:
    """The database refuses every statement of a stranger or of a former member."""
    home = ConfigHome(tmp_path, tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "s")})
    for attempt in (
        "select 1 from team.session",
        "select team.me()",
        "select team.enter(gen_random_uuid(), 'x')",
    ):
        with (
            pytest.raises(TeamRequestFailed, match="has no team, or your role"),
            connect_to_team(STRANGER_ROLE) as db,
        ):
            db.connection.execute(attempt.encode())
    with pytest.raises(TeamRequestFailed, match="has no team, or your role"):
        join_team(STRANGER_ROLE, home.where)
    assert read_team(home.where) is None
    root.execute("revoke rh_member from mallory")
    try:
        with pytest.raises(TeamRequestFailed), connect_to_team("mallory") as db:
            list_team_sessions(db)
    finally:
        root.execute("grant rh_member to mallory")


def test_the_server_name_is_verified_over_a_network(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection over a network is refused if the certificate is untrusted or names a different host.

    The ``sslmode`` that the user set makes no difference.
    """
    services = tmp_path / "network.conf"
    monkeypatch.setenv("PGSERVICEFILE", str(services))

    def connect_to_host(host: str, **parameters: str) -> None:
        server.write_service_file(database, services, host=host, hostaddr="127.0.0.1", **parameters)
        with connect_to_team("alice"):
            pass

    trusted = {"sslrootcert": str(server.folder / "root.crt")}
    connect_to_host("team.test", **trusted)
    for mode in ("disable", "require", "verify-ca"):
        with pytest.raises(TeamRequestFailed, match="does not match host name"):
            connect_to_host("other.test", sslmode=mode, **trusted)
    # With Kerberos encryption, libpq would not check the certificate.
    connect_to_host("team.test", gssencmode="require", **trusted)
    with pytest.raises(TeamRequestFailed, match="certificate verify failed") as refused:
        connect_to_host("team.test")
    assert "sslrootcert=" in refused.value.remedy
    connect_to_host("localhost", sslmode="disable")


def test_the_systems_certificate_authorities_are_trusted(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection trusts the system's certificate authorities, unless the user set others (TH5).

    The driver's own OpenSSL knows no authorities.
    """
    services = tmp_path / "network.conf"
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("HOME", str(tmp_path))
    server.write_service_file(
        database, services, host="team.test", hostaddr="127.0.0.1", sslrootcert=""
    )
    known = ssl.get_default_verify_paths()._replace(
        cafile=str(server.folder / "root.crt"), capath=""
    )
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: known)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    with (
        pytest.raises(TeamRequestFailed, match="certificate verify failed"),
        connect_to_team("alice"),
    ):
        pass
    monkeypatch.delenv("SSL_CERT_FILE")
    with connect_to_team("alice"):
        pass
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("localhost", True), ("/run/x", True), ("127.0.0.2", True), ("::1", True), ("localhost.evil.example", False),
     ("127.evil.example", False), ("::1.evil.example", False), ("10.0.0.1", False), ("localhost,evil.example", False)],
)  # fmt: skip
def test_local_addresses_are_recognized(host: str, is_local: bool) -> None:
    """Loopback addresses and sockets are recognized as local.

    A host whose name only begins like a loopback address is not local.
    """
    assert connect._are_all_hosts_local(host) is is_local


def test_a_push_restores_no_expired_data(
    private_session: Path, alice: Machine, root: Connection
) -> None:
    """A push refuses a session that retention removed, until the session has new records.

    Retention also removes old sessions that a program stored with the Agent SDK.
    """
    root.execute(
        "insert into team.sdk_part(owner, project_key, session_id, subpath, mtime) values(2, 'p', 's', '', 1)"
    )
    with connect_to_team("admin") as db:
        db.run_statement("select team.retain(30)")
    assert root.execute("select count(*) from team.session").fetchone() == (0,), (
        "it ended in 2026's first days"
    )
    assert root.execute("select count(*) from team.sdk_part").fetchone() == (0,)
    write_upload_progress(private_session.stem, UploadProgress(), alice.where)
    assert push_from_machine(alice, private_session).result == "expired"
    assert root.execute("select count(*) from team.session").fetchone() == (0,)
    new = session_bytes([user("new", uuid="new", ts="2099-01-01T00:00:00.000Z")])
    private_session.write_bytes(private_session.read_bytes() + new)
    assert push_from_machine(alice, private_session).result == "sent"


def test_retention_removes_a_session_without_a_valid_end(
    private_session: Path, root: Connection
) -> None:
    """If the end of a session is "infinity", retention removes the session by the date of its push."""
    root.execute("update team.session set ended = 'infinity', pushed = '2020-01-01'")
    with connect_to_team("admin") as db:
        db.run_statement("select team.retain(30)")
    assert root.execute("select count(*) from team.session").fetchone() == (0,)


def test_only_an_admin_creates_the_table_of_a_new_month(
    private_session: Path, alice: Machine, root: Connection
) -> None:
    """A push by an admin creates the table for the next month. A push by another member doesn't."""
    root.execute("select team.make_months()")
    month = root.execute(
        "select 'passage_' || to_char(now() + interval '1 month', 'YYYYMM')"
    ).fetchone()
    root.execute(f"drop table team.{month[0]}".encode())  # type: ignore[index]
    for is_admin in (False, True):
        root.execute("update team.member set admin = %s where login = 'alice'", (is_admin,))
        push_from_machine(alice, write_on_machine(alice, session=session_id(8 + is_admin)))
        assert root.execute("select to_regclass('team.' || %s) is not null", month).fetchone() == (
            is_admin,
        )


@pytest.mark.parametrize(
    ("error_text", "expected_remedy"),
    [
        ('connection failed: FATAL:  password authentication failed for user "alice"', "~/.pgpass"),
        ("connection failed: fe_sendauth: no password supplied", "~/.pgpass"),
        ('definition of service "work" not found', "~/.pg_service.conf: [NAME], host="),
        (
            "connection failed: FATAL:  unsupported startup parameter: options",
            "ignore_startup_parameters = options",
        ),
        (
            "connection failed: FATAL:  unsupported startup parameter in options: statement_timeout",
            "ignore_startup",
        ),
        ("connection failed: Connection refused", "the network"),
    ],
)
def test_a_missing_setting_of_the_connection_is_named(
    error_text: str, expected_remedy: str
) -> None:
    """If a connection fails because a setting is missing, the remedy names the setting.

    The error quotes the message from libpq, the server or pgbouncer.
    """
    with (
        pytest.raises(TeamRequestFailed, match=re.escape(error_text)) as failed,
        convert_driver_errors(),
    ):
        raise psycopg.OperationalError(error_text)
    assert expected_remedy in failed.value.remedy


@pytest.mark.parametrize(
    "service", ["host=x password=y", "postgresql://a:b@c/d", "", "../x", "a b"]
)
def test_join_accepts_only_a_service_name(service: str, tmp_path: Path) -> None:
    """``join`` refuses an address or a password before it connects."""
    home = ConfigHome(tmp_path, tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "s")})
    with pytest.raises(UsageError, match="never an address or a password"):
        join_team(service, home.where)


def test_libpq_variables_of_a_project_are_ignored(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection ignores libpq variables that a project may set, such as ``PGHOSTADDR``.

    A service file inside the project is refused. Otherwise a repository could redirect all data to
    its own server.
    """
    project = tmp_path / "project"
    project.mkdir()
    services = Path(os.environ["PGSERVICEFILE"])
    (project / "services").write_text(services.read_text())
    monkeypatch.chdir(project)
    for file in ("services", "/proc/self/cwd/services", str(project / "services")):
        monkeypatch.setenv("PGSERVICEFILE", file)
        with (
            pytest.raises(TeamRequestFailed, match="definition of service"),
            connect_to_team("alice"),
        ):
            pass
        assert os.environ["PGSERVICEFILE"] == file
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with monkeypatch.context() as variables:
        variables.setenv("PGHOSTADDR", "192.0.2.1")
        variables.setenv("PGSSLMODE", "nonsense")
        with connect_to_team("alice"):
            pass
