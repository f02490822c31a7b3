"""Tests of a member's identity in the database.

No object that a member creates replaces one of the team's objects, and no login name grants a role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import ImportSpec
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.team import connect, sharing
from resume_hooks.parts.team.ancestry import add_missing_ancestors, fetch_server_lineage
from resume_hooks.parts.team.connect import TeamRequestFailed, connect_to_team
from resume_hooks.parts.team.fetching import resume_team_session
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sessions import find_team_session, list_team_sessions
from resume_hooks.parts.team.team_search import search_team
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.link_log import read_links
from tests.builders import SESSION, conversation, custom_title, session_id, user
from tests.needs import REPO
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection, Server
from tests.parts.team.test_push import push_from_machine, write_on_machine

OWNER_FUNCTIONS_QUERY = """
select p.oid::regprocedure::text, p.proconfig, p.prosecdef from pg_proc p where p.pronamespace = 'team'::regnamespace
"""
TYPE_NAMES_QUERY = "select typname from pg_type t join pg_namespace n on n.oid = typnamespace where nspname = 'team'"
TABLES_QUERY = """
select relname, string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and attnum > 0
where relnamespace = 'team'::regnamespace and relkind in ('r', 'p') group by relname
"""
EVIL_OBJECTS_SQL = """
create function pg_temp.evil() returns trigger language plpgsql as
$$ begin perform set_config('evil.user', current_user, false); return new; end $$
"""


@pytest.fixture(params=["new", "upgraded"])
def new_or_upgraded_database(
    request: pytest.FixtureRequest, server: Server, tmp_path: Path
) -> Iterator[str]:
    """Yield the name of a team's database, which is either new or upgraded from the first schema.

    Alice is its first member.
    """
    name = f"made_{request.param}"
    with server.connect_as_superuser("postgres") as db:
        db.execute(f"create database {name} owner admin".encode())
    with pytest.MonkeyPatch.context() as patch:
        server.write_service_file(name, tmp_path / "services.conf")
        patch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
        with patch.context() as first:
            if request.param == "upgraded":
                first.setattr(connect, "SCHEMA_VERSION", 1)
            with connect_to_team("admin", allows_any_version=True) as db:
                db.connection.execute(connect.read_schema_sql().encode())
        with connect_to_team("alice", allows_any_version=True) as db:
            db.connection.execute("select team.enter(gen_random_uuid(), 'laptop')")
        if request.param == "upgraded":
            with connect_to_team("admin", allows_any_version=True) as db:
                db.connection.execute(connect.read_schema_sql(1).encode())
        with connect_to_team("mallory") as db:
            db.connection.execute("select team.enter(gen_random_uuid(), 'dark')")
        yield name
    server.drop_database(name)


def list_calls_of_owner_functions(db: Connection) -> list[str]:
    """Return a SQL statement for each function that runs with its owner's rights.

    The statement calls the function with arguments of matching types.
    """
    found = []
    for signature, config, definer in db.execute(OWNER_FUNCTIONS_QUERY).fetchall():
        assert definer, signature
        assert (config or [""])[0] == "search_path=pg_catalog, team, pg_temp", signature
        name, types = re.fullmatch(r"([^(]+)\((.*)\)", signature).groups()  # type: ignore[union-attr]
        values = {
            "uuid": "gen_random_uuid()",
            "text": "'x'",
            "name": "'alice'",
            "jsonb": "'{}'",
            "boolean": "false",
        }
        values |= {
            "integer": "1",
            "bigint": "1",
            '"char"': "'t'",
            "tsquery": "'x'::tsquery",
            "bytea": "''::bytea",
        }
        values |= {"timestamp with time zone": "now()"}
        arguments = [values.get(each, f"array[]::{each}") for each in types.split(",") if each]
        found.append(f"select * from {name}({', '.join(arguments)})")
    return found


def test_objects_of_a_member_do_not_replace_those_of_the_team(
    new_or_upgraded_database: str, server: Server
) -> None:
    """A member's own tables, types, functions, operators and casts don't replace those of the team.

    None of the member's statements runs with the owner's rights, whatever the search path is.
    """
    with server.connect_as_superuser(new_or_upgraded_database) as root:
        functions, tables = (
            list_calls_of_owner_functions(root),
            {str(name): columns for name, columns in root.execute(TABLES_QUERY).fetchall()},
        )
        types = {
            row[0]
            for row in root.execute(TYPE_NAMES_QUERY).fetchall()
            if not str(row[0]).startswith("_")
        } - set(tables)
        before = {table: read_table_rows(root, table) for table in tables if table != "audit"}
        alice = single_value(root, "select id from team.member where login = 'alice'")
    refused: dict[str, str] = {}
    with connect_to_team("mallory") as team:
        db = team.connection
        own = single_value(db, "select team.me()")
        db.execute(EVIL_OBJECTS_SQL.encode())
        for table, columns in tables.items():
            db.execute(f"create temp table {table} ({columns})".encode())
            if table == "member":
                db.execute(
                    "insert into pg_temp.member(id, login, admin) values(%s, 'mallory', true)",
                    (alice,),
                )
                db.execute("update pg_temp.member set role = to_regrole('mallory')::oid")
            db.execute(f"grant all on pg_temp.{table} to public".encode())
            trigger = f"create trigger evil before insert or update or delete on pg_temp.{table} for each row"
            db.execute(f"{trigger} execute function pg_temp.evil()".encode())
        for name in types:
            db.execute(f"create domain pg_temp.{name} as text".encode())
        db.execute("create function pg_temp.me() returns int language sql as 'select 1'")
        db.execute("create function pg_temp.required() returns int language sql as 'select 1'")
        db.execute(
            "create function pg_temp.my_scopes() returns int[] language sql as 'select array[1]'"
        )
        db.execute(
            "create function pg_temp.quote_ident(name) returns text language sql as $$ select 'alice' $$"
        )
        db.execute(
            "create function pg_temp.same(name, name) returns boolean language sql as 'select true'"
        )
        db.execute(
            "create operator pg_temp.= (leftarg = name, rightarg = name, function = pg_temp.same)"
        )
        db.execute("create type pg_temp.mine as (x int)")
        db.execute("create cast (pg_temp.mine as text) with inout as implicit")
        for path in ("pg_temp", "pg_temp, team, pg_catalog", "team, pg_catalog"):
            db.execute(f"set search_path = {path}".encode())
            assert single_value(db, "select team.me()") == own
            for call in functions:
                try:
                    db.execute(call.encode())
                except psycopg.Error as error:
                    refused[error.sqlstate or ""] = call
            assert (
                single_value(db, "select coalesce(current_setting('evil.user', true), '')") == ""
            ), path
            assert db.execute("select * from team.session").fetchall() == []
    assert refused.keys() <= {"42501", "RH403", "RH404", "RH409", "RH410", "RH411", "22023"}, (
        refused
    )
    with server.connect_as_superuser(new_or_upgraded_database) as root:
        for table, held in before.items():
            if table not in {
                "session",
                "machine",
                "mutex",
                "project",
                "project_member",
                "scope",
                "forgotten",
            }:
                assert read_table_rows(root, table) == held, table
        assert (
            single_value(
                root, "select count(*) from team.audit where login <> 'mallory' and act <> 'enter'"
            )
            == 0
        )


def single_value(db: Connection, statement: str) -> object:
    """Return the single value that a statement selects."""
    row = db.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def read_table_rows(db: Connection, table: str) -> list[tuple[object, ...]]:
    """Return all rows of a table of the team, in order."""
    return db.execute(f"select * from team.{table} order by 1".encode()).fetchall()


@pytest.fixture
def carol(server: Server, alice: Machine, root: Connection, tmp_path: Path) -> Iterator[Machine]:
    """Yield the machine of a member whose role was dropped and recreated.

    Before that, the member pushed a private and a shared session.
    """
    again = "create role carol login; grant rh_member to carol"
    root.execute("drop role if exists carol")
    root.execute(again.encode())
    services = tmp_path / "services.conf"
    text = services.read_text()
    services.write_text(
        text + text[text.index("[alice]") : text.index("[bob]")].replace("alice", "carol")
    )
    member = Machine(tmp_path / "carols", "carol")
    for number in (1, 2):
        push_from_machine(member, write_on_machine(member, session=session_id(number)))
    with connect_to_team("carol") as db:
        sharing.share_session(list_team_sessions(db)[0], "team", None, db)
    root.execute(f"drop role carol; {again}".encode())
    yield member
    root.execute("drop role carol")


def test_a_recreated_role_inherits_no_data(carol: Machine, root: Connection) -> None:
    """A recreated role is not a member, and can't join under its old name until an admin decides.

    If the admin retires the old member, the role joins as a new member without the old sessions.
    """
    with connect_to_team("carol") as db:
        assert list_team_sessions(db) == []
        assert db.connection.execute("select act from team.audit").fetchall() == []
        with pytest.raises(TeamRequestFailed, match="not the one that entered as carol") as refused:
            join_team_or_raise(db.connection)
    assert "member keep" in refused.value.remedy
    with (
        connect_to_team("alice") as db,
        pytest.raises(TeamRequestFailed, match="for an admin"),
        connect.convert_driver_errors(),
    ):
        db.connection.execute("select team.settle_member('carol', 'remove', '')")
    with connect_to_team("admin") as db:
        db.connection.execute("select team.settle_member('carol', 'retire', '')")
    with connect_to_team("carol") as db:
        db.connection.execute("select team.enter(gen_random_uuid(), 'fresh')")
        assert [each.is_own for each in list_team_sessions(db)] == [False], (
            "what was shared with the team is there, as another's"
        )
        assert {row[0] for row in db.connection.execute("select act from team.audit")} == {"enter"}
    assert single_value(root, "select count(*) from team.session") == 2


def join_team_or_raise(db: Connection) -> None:
    """Join the team with this connection's role. If the role is refused, raise one of our own errors."""
    with connect.convert_driver_errors():
        db.execute("select team.enter(gen_random_uuid(), 'x')")


def test_the_admin_can_bind_a_member_to_a_new_role(carol: Machine) -> None:
    """If the admin confirms a recreated role with ``keep``, the member gets all sessions back."""
    with connect_to_team("admin") as db:
        db.connection.execute("select team.settle_member('carol', 'keep', '')")
    with connect_to_team("carol") as db:
        db.connection.execute("select team.enter(gen_random_uuid(), 'laptop')")
        assert [each.is_own for each in list_team_sessions(db)] == [True, True]


def test_a_members_shared_sessions_can_be_given_away(carol: Machine, root: Connection) -> None:
    """An admin can give a member's shared sessions to another member, but not the private sessions.

    The private sessions are removed with the member.
    """
    with connect_to_team("admin") as db:
        assert (
            single_value(db.connection, "select team.settle_member('carol', 'give', 'alice')") == 1
        )
    with connect_to_team("alice") as db:
        assert [(each.is_own, each.visibility) for each in list_team_sessions(db)] == [
            (True, "team")
        ]
    gone = single_value(root, "select login from team.member where login::text like 'carol (left%'")
    with connect_to_team("admin") as db:
        assert (
            single_value(db.connection, f"select team.settle_member('{gone}', 'remove', '')") == 1
        )
    assert single_value(root, "select count(*) from team.session") == 1
    assert single_value(root, "select count(distinct part) from team.passage") == 1


def test_a_member_cannot_be_bound_to_another_members_role(carol: Machine, root: Connection) -> None:
    """Not even the admin can bind a member to another person's role (TH4).

    With such a binding, that person could read the member's private sessions.
    """
    root.execute("create role spare login; grant rh_member to spare")
    try:
        with (
            pytest.raises(TeamRequestFailed, match="another role than that of carol"),
            connect_to_team("admin") as db,
        ):
            db.run_statement("select team.settle_member('carol', 'keep', 'spare')")
        root.execute("update team.member set role = to_regrole('carol')::oid where login = 'carol'")
        with pytest.raises(TeamRequestFailed, match="another role"), connect_to_team("admin") as db:
            db.run_statement("select team.settle_member('carol', 'keep', 'spare')")
        root.execute("alter role carol rename to caroline")
        with connect_to_team("admin") as db:
            db.run_statement("select team.settle_member('carol', 'keep', 'caroline')")
        assert single_value(root, "select count(*) from team.member where login = 'caroline'") == 1
    finally:
        root.execute("alter role caroline rename to carol; drop role spare")


def test_a_retired_members_role_cannot_join_without_the_admin(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A retired member's role can't join again until the admin confirms the role."""
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member('mallory', 'retire', '')")
    with (
        pytest.raises(TeamRequestFailed, match="your role was retired") as refused,
        connect_to_team("mallory") as db,
    ):
        db.run_statement("select team.enter(gen_random_uuid(), 'back')")
    assert "member keep" in refused.value.remedy
    left = single_value(
        root, "select login::text from team.member where login::text like 'mallory (left%'"
    )
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member(%s, 'keep', 'mallory')", (left,))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.enter(gen_random_uuid(), 'back')")


def test_a_transferred_session_is_resumed_under_a_new_id(
    carol: Machine, alice: Machine, root: Connection
) -> None:
    """A member to whom a session was transferred resumes it like another member's session.

    The resumed session has a new id.
    """
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member('carol', 'give', 'alice')")
    with connect_to_team("alice") as db:
        (session,) = list_team_sessions(db)
        assert (session.is_own, session.is_transferred) == (True, True)
        assert {hit.is_own for hit in search_team(["prompt"], db, max_hits=5).hits} == {False}
        wish = ImportSpec(str(alice.home.root), imports_all_records=True, force=True)
        came, notes = resume_team_session(session, wish, db, Caller(alice.where, dry_run=True))
    assert came[0].session_id != session.session_id
    assert "a member's who left" in notes[0]


def test_a_pushed_session_is_private_despite_a_transferred_session_with_its_id(
    carol: Machine, alice: Machine, root: Connection
) -> None:
    """A session that a member pushes is private at first.

    This holds even if a shared session with the same id was transferred to the member.
    """
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member('carol', 'give', 'alice')")
    given_id = str(single_value(root, "select session_id from team.session where given"))
    push_from_machine(alice, write_on_machine(alice, session=given_id))
    with connect_to_team("alice") as db:
        assert {each.is_transferred: each.visibility for each in list_team_sessions(db)} == {
            True: "team",
            False: "private",
        }


def test_a_locator_prefers_the_members_own_session(
    carol: Machine, alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A locator prefers the member's own session to a transferred or shared one with the same id.

    This holds even if the other sessions ended later.
    """
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member('carol', 'give', 'alice')")
    given_id = str(single_value(root, "select session_id from team.session where given"))
    push_from_machine(alice, write_on_machine(alice, session=given_id))
    push_from_machine(mallory, write_on_machine(mallory, session=given_id))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (given_id,))
    root.execute("update team.session set ended = '2090-01-01T00:00:00Z' where given or owner = 3")
    with connect_to_team("alice") as db:
        found = find_team_session(given_id, db)
    assert (found.is_own, found.is_transferred) == (True, False)


@pytest.mark.parametrize(
    "title", [f"carol:{session_id(9)}", "carol:00000009", "carol@desk:00000009", "carol:0000"]
)
def test_a_title_is_not_accepted_as_an_id(alice: Machine, mallory: Machine, title: str) -> None:
    """A locator that looks like an id does not match a session whose title is the same text."""
    name = session_id(8)
    push_from_machine(
        mallory,
        write_on_machine(
            mallory, [custom_title(title, name), *conversation(2, session_id=name)], name
        ),
    )
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (name,))
    with connect_to_team("alice") as db:
        assert find_team_session(name, db).title == title
        with pytest.raises(SessionNotFound):
            find_team_session(title, db)
        with pytest.raises(SessionNotFound):
            find_team_session("00000009", db)
        assert find_team_session("00000008", db).title == title


def test_an_id_prefix_finds_the_members_own_session_first(alice: Machine, mallory: Machine) -> None:
    """The beginning of an id finds the user's own session in preference to another member's session.

    A locator with the other member's login before the id finds the other member's session.
    """
    own, twin = f"{SESSION[:-1]}2", f"{SESSION[:-1]}3"
    push_from_machine(alice, write_on_machine(alice, session=own))
    push_from_machine(mallory, write_on_machine(mallory, session=twin))
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (twin,))
    with connect_to_team("alice") as db:
        assert find_team_session(SESSION[:8], db).session_id == own
        assert find_team_session(f"mallory:{SESSION[:8]}", db).session_id == twin


@pytest.mark.parametrize("own_session_place", ["here", "on the other machine"])
def test_another_members_session_with_the_same_id_is_not_linked(
    alice: Machine, desk: Machine, mallory: Machine, own_session_place: str
) -> None:
    """A resume of another member's session makes no link to the user's own session with the same id.

    A note tells the user that one of the user's own sessions has that id.
    """
    if own_session_place == "here":
        write_on_machine(alice)
    else:
        push_from_machine(desk, write_on_machine(desk))
    push_from_machine(
        mallory, write_on_machine(mallory, [custom_title("Payroll"), *conversation(2)])
    )
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (SESSION,))
    with connect_to_team("alice") as db:
        wish = ImportSpec(str(alice.home.root), imports_all_records=True)
        came, notes = resume_team_session(
            find_team_session(f"mallory:{SESSION}", db), wish, db, Caller(alice.where)
        )
        assert [
            row.session_id for row in LineageFinder(alice.where).find_lineage(came[0].receipt.file)
        ] == [came[0].session_id]
    assert read_links(alice.where) == []
    assert "one of your own sessions has the same id" in notes[-1]


def test_hidden_records_of_another_member_are_counted(alice: Machine, mallory: Machine) -> None:
    """A resume of another member's session states how many records the model sees but the screen hides."""
    hidden = user("The user agreed.", uuid="meta", parent="r3", ts=20, isMeta=True)
    push_from_machine(
        mallory, write_on_machine(mallory, [custom_title("Zebra"), *conversation(2), hidden])
    )
    with connect_to_team("mallory") as db:
        db.run_statement("select team.share(%s, 't', '', null)", (SESSION,))
    with connect_to_team("alice") as db:
        wish = ImportSpec(str(alice.home.root), imports_all_records=True)
        for _ in range(2):
            _, notes = resume_team_session(
                find_team_session("Zebra", db), wish, db, Caller(alice.where)
            )
            assert "The model sees 1 record that the screen does not show." in notes


def test_an_ancestor_belongs_to_the_owner_of_the_child(
    alice: Machine, mallory: Machine, tmp_path: Path
) -> None:
    """A lineage contains only ancestors that belong to the owner of the child.

    A session that another member pushed under the id of a private ancestor is omitted.
    """
    bob = Machine(tmp_path / "bobs", "bob")
    parent, child, own = session_id(1), session_id(2), session_id(3)
    push_from_machine(bob, write_on_machine(bob, session=parent))
    for machine, name in ((bob, child), (alice, own)):
        head = {"continue_metadata": {"parent_session_id": parent, "kind": "handoff"}, "type": "x"}
        push_from_machine(
            machine, write_on_machine(machine, [head, *conversation(2, session_id=name)], name)
        )
    push_from_machine(mallory, write_on_machine(mallory, session=parent))
    for login, name in (("bob", child), ("mallory", parent)):
        with connect_to_team(login) as db:
            db.run_statement("select team.share(%s, 't', '', null)", (name,))

    def list_ids_statuses_and_owners(rows: list[Ancestor]) -> list[tuple[str, str, str]]:
        return [(row.session_id, row.status, row.owner) for row in rows]

    with connect_to_team("alice") as db:
        assert list_ids_statuses_and_owners(
            fetch_server_lineage(find_team_session(f"bob:{child}", db), db)
        ) == [
            (parent, "private", ""),
            (child, "team", "bob"),
        ]
        here = LineageFinder(alice.where).find_lineage(str(alice.home.project() / f"{own}.jsonl"))
        assert list_ids_statuses_and_owners(add_missing_ancestors(here, db, alice.where)) == [
            (parent, "private", ""),
            (own, "present", ""),
        ]
        wish = ImportSpec(str(alice.home.root), imports_all_records=True)
        (came,), _ = resume_team_session(
            find_team_session(f"bob:{child}", db), wish, db, Caller(alice.where)
        )
        here = LineageFinder(alice.where).find_lineage(came.receipt.file)
        assert list_ids_statuses_and_owners(add_missing_ancestors(here, db, alice.where)) == [
            (parent, "private", ""), (child, "team", "bob"), (came.session_id, "present", ""),
        ]  # fmt: skip
    with connect_to_team("bob") as db:
        assert list_ids_statuses_and_owners(fetch_server_lineage(find_team_session(child, db), db))[
            0
        ] == (
            parent,
            "team",
            "bob",
        )


def test_a_returning_member_cannot_change_sessions_given_to_others(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A member who returns can't change the sessions that were given away when the member left."""
    path = write_on_machine(mallory)
    push_from_machine(mallory, path)
    with connect_to_team("mallory") as db:
        sharing.share_session(list_team_sessions(db)[0], "team", None, db)
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member('mallory', 'give', 'alice')")
    left = single_value(
        root, "select login::text from team.member where login::text like 'mallory (left%'"
    )
    with connect_to_team("admin") as db:
        db.run_statement("select team.settle_member(%s, 'keep', 'mallory')", (left,))
    before = read_table_rows(root, "session")
    with connect_to_team("mallory") as db:
        told = (path.stem, mallory.team.machine, before[0][0])
        db.run_statement(
            'select team.begin_session(%s, %s, \'{"title": "Lies"}\', %s, true, null)', told
        )
    assert read_table_rows(root, "session")[: len(before)] == before


def test_an_open_transaction_does_not_block_retirement(alice: Machine, mallory: Machine) -> None:
    """The admin can retire members while one of them has an open transaction."""
    path = write_on_machine(mallory)
    push_from_machine(mallory, path)
    with connect_to_team("mallory") as db, db.transaction():
        db.run_statement("select team.share(%s, 'g', 'alice', null)", (path.stem,))
        db.run_statement(
            "select team.begin_session('x', %s, '{}', null, false, null)", (mallory.team.machine,)
        )
        with connect_to_team("admin") as own:
            own.run_statement("set lock_timeout = '2s'")
            for login in ("alice", "mallory"):
                own.run_statement("select team.settle_member(%s, 'retire', '')", (login,))


@pytest.mark.parametrize("decision", ["retire", "give", "remove"])
@pytest.mark.parametrize("holder", ["mallory", "alice"])
def test_no_lock_delays_the_end_of_membership(
    alice: Machine, mallory: Machine, root: Connection, decision: str, holder: str
) -> None:
    """A member's rights end immediately, even if that member or another member holds locks.

    A later call removes data that was locked.
    """
    for machine in (mallory, alice):
        push_from_machine(
            machine, write_on_machine(machine, session=session_id(5 if machine is mallory else 6))
        )
    held = session_id(5 if holder == "mallory" else 6)
    project = (
        "select team.project_add('host/mine'), team.project_admit('host/mine', 'mallory', true)"
    )
    with connect_to_team(holder) as db:
        db.run_statement(project)
        db.run_statement(
            "select team.share(%s, 'g', 'mallory', null), team.share(%s, 't', '', null)",
            (held, held),
        )
    with connect_to_team(holder) as db, db.transaction():
        db.run_statement("select team.project_admit('host/mine', 'mallory', false)")
        db.run_statement(
            "select team.share(%s, 'g', 'mallory', null), team.share(%s, 't', '', null)",
            (held, held),
        )
        with connect_to_team("admin") as own:
            own.run_statement("set lock_timeout = '2s'")
            apply_admin_decision(own, "mallory", decision)
        told = root.execute("select detail from team.audit where act = %s", (decision,)).fetchone()
        assert told
        kept = holder == "mallory" and decision != "retire"
        assert told[0]["held"] == int(kept)
        with (
            pytest.raises(TeamRequestFailed, match="no member"),
            connect_to_team("mallory") as again,
            connect.convert_driver_errors(),
        ):
            again.run_statement("select team.required()")
    if not kept:
        return
    with connect_to_team("admin") as own:
        apply_admin_decision(own, str(told[0]["as"]), decision)
    assert (
        single_value(
            root,
            "select count(*) from team.session s join team.member m on m.id = owner where role is null",
        )
        == 0
    )


def apply_admin_decision(db: Database, login: str, decision: str) -> None:
    """Carry out the admin's decision about a member: retire, give or remove."""
    db.run_statement(
        "select team.settle_member(%s, %s, %s)",
        (login, decision, "admin" if decision == "give" else ""),
    )


def test_adding_an_existing_row_uses_no_id(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """Adding an existing project or joining again uses up no ids from the sequences that members share."""
    names = ("project", "scope", "machine", "member")

    def taken_ids() -> list[object]:
        return [single_value(root, f"select last_value from team.{name}_id_seq") for name in names]

    with connect_to_team("alice") as db:
        db.run_statement("select team.project_add('host/mine')")
    before = taken_ids()
    for machine, login in ((alice, "alice"), (mallory, "mallory")):
        with connect_to_team(login) as db:
            for _ in range(3):
                db.run_statement(
                    "select team.project_add('host/mine'), team.enter(%s, 'again')",
                    (machine.team.machine,),
                )
    assert taken_ids() == before
    assert single_value(root, "select count(*) from team.machine where label = 'again'") == 2


def test_the_audit_records_only_valid_share_targets(alice: Machine, root: Connection) -> None:
    """The audit log records the member with whom a session is shared, but not an invalid target."""
    push_from_machine(alice, write_on_machine(alice))
    with connect_to_team("alice") as db:
        for kind, whom in (("t", "bob (by order of admin)"), ("g", "alice"), ("m", "all")):
            db.run_statement("select team.share(%s, %s, %s, null)", (SESSION, kind, whom))
    whoms = root.execute(
        "select detail->>'whom' from team.audit where act = 'share' order by id"
    ).fetchall()
    assert whoms == [("",), ("alice",), ("",)]


def test_no_member_can_lock_a_table(alice: Machine, root: Connection) -> None:
    """No member can lock a table of the team in a mode that stops writers."""
    names = [row[0] for row in root.execute(TABLES_QUERY.encode()).fetchall()]
    assert len(names) > 15
    for name in names:
        with pytest.raises(TeamRequestFailed), connect_to_team("alice") as db, db.transaction():
            db.run_statement(f"lock table team.{name} in share mode nowait")


def test_retention_does_not_wait_for_locks(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """Retention skips data that an open transaction locks, and removes it the next time.

    An open search locks the table of a month, and an open share locks a session.
    """
    path = write_on_machine(mallory)
    push_from_machine(mallory, path)
    push_from_machine(alice, write_on_machine(alice, session=session_id(8)))
    root.execute("update team.session set ended = '2020-01-01T00:00:00Z', pushed = '2020-01-01'")
    month = (
        "create table team.passage_202001 partition of team.passage for values from ('2020-01-01') to "
        "('2020-02-01')"
    )
    root.execute(month.encode())
    root.execute(b"alter table team.passage_202001 owner to rh_owner")
    with connect_to_team("mallory") as db, db.transaction():
        search_team(["prompt"], db, max_hits=5)
        db.run_statement("select team.share(%s, 't', '', null)", (path.stem,))
        with connect_to_team("admin") as own:
            own.run_statement("set lock_timeout = 0")
            own.run_statement("select team.retain(30)")
        with connect_to_team("alice") as other:
            assert search_team(["prompt"], other, max_hits=5).hits == []
    assert read_table_rows(root, "session") != []
    with connect_to_team("admin") as own:
        own.run_statement("select team.retain(30)")
    assert read_table_rows(root, "session") == []
    assert single_value(root, "select to_regclass('team.passage_202001') is null")


def test_retention_skips_locked_sessions(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """Retention skips 50 sessions that one open transaction locks, and removes them the next time."""
    begin = "select team.begin_session('old' || n, %s, %s, null, false, null) from generate_series(1, 50) n"
    push_from_machine(alice, write_on_machine(alice))
    with connect_to_team("mallory") as db:
        db.run_statement(begin, (mallory.team.machine, '{"ended": "2020-01-01T00:00:00Z"}'))
    root.execute("update team.session set ended = '2020-01-01T00:00:00Z'")
    with connect_to_team("mallory") as db, db.transaction():
        db.run_statement(begin, (mallory.team.machine, "{}"))
        with connect_to_team("admin") as own:
            own.run_statement("set lock_timeout = 0; set statement_timeout = '10s'")
            own.run_statement("select team.retain(30)")
    assert single_value(root, "select count(*) from team.session") == 50
    with connect_to_team("admin") as own:
        own.run_statement("select team.retain(30)")
    assert read_table_rows(root, "session") == []


def test_an_open_search_does_not_block_retention(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """An open search blocks neither a push nor retention, and an open push does not block a search.

    If a table stays locked, the error's remedy names the open transaction.
    """
    month = single_value(root, "select 'passage_' || to_char(now() + interval '1 month', 'YYYYMM')")
    root.execute(f"drop table team.{month}".encode())
    with connect_to_team("mallory") as db, db.transaction():
        search_team(["prompt"], db, max_hits=5)
        assert push_from_machine(alice, write_on_machine(alice)).result == "sent"
        with connect_to_team("admin") as own:
            own.run_statement("select team.retain(3000)")
    with connect_to_team("mallory") as db, db.transaction():
        db.run_statement(
            "select team.begin_session('x', %s, '{}', null, false, null)", (mallory.team.machine,)
        )
        with connect_to_team("alice") as other:
            other.run_statement("set lock_timeout = '2s'")
            assert search_team(["prompt"], other, max_hits=5).hits, "no push locks the words"
    with connect_to_team("admin") as own:
        own.run_statement("select team.retain(3000)")
    assert single_value(root, f"select to_regclass('team.{month}') is not null")
    root.execute("begin; lock table team.session")
    with (
        pytest.raises(TeamRequestFailed, match="lock timeout") as refused,
        connect_to_team("alice") as db,
    ):
        list_team_sessions(db)
    root.execute("rollback")
    assert "open transaction" in refused.value.remedy


def test_no_member_can_lock_out_an_owner(
    alice: Machine, mallory: Machine, root: Connection
) -> None:
    """A member can't take a lock that blocks another member's push or ``forget``."""
    path = write_on_machine(alice)
    with connect_to_team("mallory") as db:
        db.run_statement(
            "select pg_advisory_lock(hashtextextended(%s, id)) from team.member", (path.stem,)
        )
        for statement in (
            "lock table team.member in row share mode",
            "select 1 from team.member for update",
        ):
            with pytest.raises(TeamRequestFailed), connect.convert_driver_errors():
                db.run_statement(statement)
        root.execute("alter role alice set lock_timeout = '2s'")
        try:
            assert push_from_machine(alice, path).result == "sent"
            with connect_to_team("alice") as own:
                assert sharing.forget_session_and_count_copies(path.stem, own, alice.where) == 1
        finally:
            root.execute("alter role alice reset lock_timeout")


def test_two_machines_with_the_same_name_get_different_labels(
    alice: Machine, tmp_path: Path
) -> None:
    """If two machines of a member have the same name, the second machine's label contains part of its id."""
    other = Machine(tmp_path / "again" / "laptop", "alice")
    for machine in (alice, other):
        push_from_machine(machine, write_on_machine(machine))
    with connect_to_team("alice") as db:
        labels = {each.machine for each in list_team_sessions(db)}
    assert labels == {"laptop", f"laptop {other.team.machine[:4]}"}


def test_rights_are_checked_once_per_statement(alice: Machine) -> None:
    """The database computes a member's rights once per query, not once per row.

    One function call per row took 1.4 s for 50,000 sessions.
    """
    with connect_to_team("alice") as db:
        plan = db.connection.execute("explain select * from team.session").fetchall()
    text = "\n".join(str(row[0]) for row in plan)
    assert "my_granted" in text or "InitPlan" in text
    assert "granted(session_id" not in text


def test_after_a_restore_the_admin_must_bind_members_to_roles(
    server: Server, database: str, alice: Machine, root: Connection, tmp_path: Path
) -> None:
    """After a restore on a server with other roles, nobody is a member until the admin binds members to roles.

    The admin runs the SQL lines in ``docs/team.md``.
    """
    push_from_machine(alice, write_on_machine(alice))
    copy = "restored"
    # The roles have different numbers, as on another server.
    rotated = "select id, lead(role, 1, first) over (order by id) as role from (select *, first_value(role)"
    rotated += " over (order by id) as first from team.member where role is not null) m"
    root.execute(f"update team.member m set role = r.role from ({rotated}) r where r.id = m.id")
    with server.connect_as_superuser("postgres") as db:
        db.execute(f"create database {copy}".encode())
    dump = re.sub(rb"(?m)^\\(un)?restrict.*$", b"", server.dump_database(database))
    server.restore_database(copy, dump)
    server.write_service_file(copy, tmp_path / "services.conf")
    try:
        with connect_to_team("alice") as db:
            assert list_team_sessions(db) == []
        page = (REPO / "docs" / "team.md").read_text(encoding="utf-8")
        (lines,) = re.findall(r"^```\n(GRANT rh_owner.*?)^```$", page, re.MULTILINE | re.DOTALL)
        with server.connect_as_superuser(copy) as db:
            db.execute(lines.encode())
            db.execute("revoke rh_owner from postgres")
        with connect_to_team("alice") as db:
            assert [each.is_own for each in list_team_sessions(db)] == [True]
    finally:
        server.drop_database(copy)
