"""Tests of the ``team`` verbs with two people, three machines and one server.

Every answer must match the schema of its verb.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.errors import AmbiguousLocator
from resume_hooks.maintenance.doctor import Finding, check_installation
from resume_hooks.parts.team import answers, background, connect, pushing, team_file
from resume_hooks.parts.team.fetching import read_pulled_sessions
from resume_hooks.parts.team.membership import read_project_name
from resume_hooks.parts.team.pushing import PushResult
from resume_hooks.parts.team.sessions import TeamSession, choose_team_session
from resume_hooks.parts.team.team_file import PUSH_ENABLED_FILE_NAME, find_team_folder, read_team
from resume_hooks.parts.team.verbs.team_answer import format_push_results
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.processes import read_process_start_time
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli
from tests.cli.fork_server import ForkServer
from tests.needs import REPO
from tests.parts.team.server import Connection, Server

CHILD_ID = session_id(2)


class Person:
    """A person's home directory on one machine, with a project folder.

    ``run`` calls the command line there.
    """

    def __init__(self, root: Path, name: str, server: ForkServer) -> None:
        self.name = name
        self.here = root / f"src-{root.name}"
        self.here.mkdir(parents=True)
        config = root / ".claude"
        (config / "projects").mkdir(parents=True)
        environ = {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(config)}
        self.home = ConfigHome(root, config, environ)
        self._env = {
            **environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src"), "RESUME_HOOKS_CLIPBOARD": "none",
            "PGSERVICEFILE": os.environ["PGSERVICEFILE"],
        }  # fmt: skip
        self._server = server

    @property
    def where(self) -> Where:
        """Return the paths and the environment of this home, as the engine's functions expect them."""
        return self.home.where

    def session_files(self) -> dict[str, Path]:
        """Return the files of the sessions in this home, by session id."""
        return {
            path.stem: path for path in sorted((self.home.config / "projects").glob("*/*.jsonl"))
        }

    def run(self, *words: str, code: int = 0, **env: str) -> str:
        """Run a command, check its exit code, and return the text of both output streams."""
        done = self._server.run(words, {**self._env, **env}, b"", str(self.here), 60)
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == code, text
        return text

    def run_lineage(self, *words: str) -> list[dict[str, Any]]:
        """Run ``lineage --team``, check its data against the schema, and return the rows."""
        data = json.loads(self.run("lineage", *words, "--team", "--json"))["data"]
        schema_of_verb("lineage").model_validate(data)
        return list(data["rows"])

    def run_team_verb(self, *words: str, code: int = 0, **env: str) -> dict[str, Any]:
        """Run a ``team`` command, check its data against the schema, and return the data or the error."""
        document = json.loads(self.run("team", *words, "--json", code=code, **env))
        if not document["ok"]:
            return dict(document["error"])
        schema_of_verb("team").model_validate(document["data"])
        return {**document["data"], "warnings": document["warnings"]}


@pytest.fixture
def people(database: str, tmp_path: Path, fork_server: ForkServer) -> dict[str, Person]:
    """Return Alice's two machines and Bob's machine by name."""
    return {
        name: Person(tmp_path / name, login, fork_server)
        for name, login in (("laptop", "alice"), ("desk", "alice"), ("bobs", "bob"))
    }


def session_with_child(person: Person, git: Any) -> Path:
    """Write a session and its child in a member's Git repository, and return the child's file."""
    git(person.here, "init", "-q")
    git(
        person.here,
        "remote",
        "add",
        "origin",
        "https://user:token@Example.com:8443/acme/parser.git",
    )
    cwd: dict[str, Any] = {"cwd": str(person.here)}
    root = [{**record, **cwd} for record in conversation(2)]
    write_session(
        person.home.project(str(person.here)), SESSION, [custom_title("Fix the parser"), *root]
    )
    head = {"continue_metadata": {"parent_session_id": SESSION, "kind": "handoff"}, "type": "x"}
    talk = [
        user("why did we drop the kumquat cache?", uuid="u", ts=900, session_id=CHILD_ID, **cwd),
        assistant(
            "because redis lost messages", uuid="a", parent="u", ts=901, session_id=CHILD_ID, **cwd
        ),
    ]
    title = custom_title("Kumquats", CHILD_ID)
    return Path(
        write_session(person.home.project(str(person.here)), CHILD_ID, [head, title, *talk])
    )


def test_team_without_a_verb_shows_the_help(cli: Cli) -> None:
    """``team`` without a verb prints its help and succeeds."""
    bare, asked = cli("team"), cli("team", "--help")
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, asked.stdout, b"")


def test_a_command_below_a_client_counts_as_run_by_the_model(people: dict[str, Person]) -> None:
    """A command in a shell below a client is treated as run by the model, which may not search the team.

    The command's environment does not mention the client, but its parent process is listed as a
    client.
    """
    laptop = people["laptop"]
    laptop.run_team_verb("join", "alice")
    assert laptop.run_team_verb("search", "kumquat")["hits"] == []
    listed = laptop.home.config / "sessions" / f"{os.getpid()}.json"
    listed.parent.mkdir()
    listed.write_text(
        json.dumps({"pid": os.getpid(), "procStart": read_process_start_time(os.getpid())})
    )
    assert "may not search the team" in laptop.run_team_verb("search", "kumquat", code=2)["message"]


def make_failing_push_function(session: str) -> Callable[..., object]:
    """Return a push function with a bug that makes it fail for this session."""

    def push_or_fail(session_file: SessionFile, *arguments: Any) -> object:
        return (
            1 // 0
            if session_file.session_id == session
            else pushing.push_session(session_file, *arguments)
        )

    return push_or_fail


def test_a_push_that_fails_is_reported(
    people: dict[str, Person], git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``status`` and ``doctor`` report a push that failed because of a missing driver or a bug.

    If a bug stops the push of one session, another session is still pushed. A later successful push
    clears the report.
    """
    laptop = people["laptop"]
    laptop.run_team_verb("join", "alice")
    session_with_child(laptop, git)
    laptop.run_team_verb("projects", "add")
    mark = Path(find_team_folder(laptop.where)) / PUSH_ENABLED_FILE_NAME
    # The driver is missing, as in a venv that was rebuilt without the driver.
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "psycopg", None)
        background.push_unsent(laptop.where, lambda: False)
    assert mark.stat().st_mtime > time.time() + 60, "tried again later"
    assert laptop.run_team_verb("status")["failing"].startswith(
        "2 sessions have been waiting to be pushed to the team since 20"
    )
    assert "psycopg, which connects" in laptop.run("doctor", code=1)
    with monkeypatch.context() as patch:
        patch.setattr(background, "push_session", make_failing_push_function(SESSION))
        os.utime(mark, (0, 0))
        background.push_unsent(laptop.where, lambda: False)
    assert "a bug in resume-hooks stopped the push (ZeroDivisionError)" in laptop.run(
        "team", "status"
    )
    assert laptop.run_team_verb("status")["behind"] == 1, "the other session was pushed"
    os.utime(mark, (0, 0))
    background.push_unsent(laptop.where, lambda: False)
    assert laptop.run_team_verb("status")["failing"] == ""


@pytest.mark.part("codex")
def test_codex_sessions_are_not_pushed(people: dict[str, Person], git: Any) -> None:
    """A push sends no Codex sessions. If the project has any, a warning says how to push a fork."""
    from tests.parts.codex import rollouts

    laptop = people["laptop"]
    laptop.run_team_verb("join", "alice")
    session_with_child(laptop, git)
    laptop.run_team_verb("projects", "add")
    (laptop.home.config / "history.jsonl").touch()
    rollouts.write_rollout(
        laptop.home.root / ".codex",
        [rollouts.meta_line(rollouts.OTHER_THREAD_ID)],
        rollouts.OTHER_THREAD_ID,
    )
    assert not laptop.run_team_verb("push", "--all", "--dry-run")["warnings"]
    rollouts.write_rollout(laptop.home.root / ".codex", [rollouts.meta_line(cwd=str(laptop.here))])
    (warning,) = laptop.run_team_verb("push", "--all", "--dry-run")["warnings"]
    assert (
        warning
        == "1 Codex session cannot be pushed; you can push a fork: resume-hooks fork SESSION --to claude"
    )
    refused = laptop.run_team_verb("push", rollouts.THREAD_ID, code=2)
    assert (
        refused["remedy"]
        == f"You can push a fork: resume-hooks fork {rollouts.THREAD_ID} --to claude"
    )


def test_a_session_moves_between_the_machines_of_a_user(
    people: dict[str, Person], git: Any, root: Connection
) -> None:
    """A pushed session can be found and continued on the user's other machine.

    The session's paths are adapted, and a push from that machine sends only the new records. Other
    members do not see the session.
    """
    laptop, desk, bobs = people["laptop"], people["desk"], people["bobs"]
    assert laptop.run_team_verb("status", code=1)["message"] == "No team was joined"
    assert laptop.run_team_verb("join", "alice")["login"] == "alice"
    session_with_child(laptop, git)
    assert read_project_name(str(laptop.here)) == "example.com/acme/parser"
    assert laptop.run_team_verb("projects")["projects"] == []
    assert not (Path(find_team_folder(laptop.where)) / PUSH_ENABLED_FILE_NAME).exists()
    assert laptop.run_team_verb("projects", "add")["projects"] == ["example.com/acme/parser"]
    assert laptop.run_team_verb("status")["behind"] == 2
    would = laptop.run_team_verb("push", "--all", "--dry-run")
    assert (would["written"], sum(each["records"] for each in would["pushed"])) == (False, 9)
    assert root.execute("select count(*) from team.session").fetchone() == (0,)
    background.push_unsent(laptop.where, lambda: False)
    status = laptop.run_team_verb("status")
    assert (status["behind"], status["service"], status["failing"]) == (0, "alice", "")
    os.unlink(Path(find_team_folder(laptop.where)) / "last")
    assert "last push  never" in laptop.run("team", "status")
    assert laptop.run_team_verb("push", "--all")["pushed"][0]["result"] == "unchanged"
    assert re.search(r"last push  20\d\d-.* UTC", laptop.run("team", "status"))
    assert re.search("last push 20.*; the server was not contacted", laptop.run("doctor", code=1))

    desk.run_team_verb("join", "alice")
    hit, *_ = desk.run_team_verb("search", "kumquat", "dropped")["hits"]
    assert (hit["owner"], hit["title"], hit["mine"]) == ("alice", "Kumquats", True)
    assert hit["reference"] == f"alice:{CHILD_ID}:2"
    assert "redis" in desk.run("search", "--team", "redis", "-lexer")
    assert desk.run_team_verb("search", "redis", "-messages")["hits"] == []
    assert desk.run_team_verb("search", '"redis lost"')["hits"]
    assert desk.run_team_verb("search", '"lost redis"')["hits"] == []
    assert desk.run_team_verb("search", "kumqu")["hits"]
    assert bobs.run_team_verb("join", "bob")["written"]
    assert (
        bobs.run_team_verb("search", "kumquat")["hits"],
        bobs.run_team_verb("sessions")["sessions"],
    ) == ([], [])

    there = desk.run_lineage("Kumquats")
    assert [(row["session_id"], row["status"], row["owner"], row["machine"]) for row in there] == [
        (SESSION, "team", "alice", socket.gethostname()), (CHILD_ID, "team", "alice", socket.gethostname())
    ]  # fmt: skip
    came = desk.run_team_verb("resume", "Kumquats")
    assert came["receipt"]["session_id"] == CHILD_ID
    brought = Path(came["receipt"]["file"])
    assert str(laptop.here).encode() not in brought.read_bytes()
    rows = LineageFinder(desk.where).find_lineage(str(brought))
    assert [(row.session_id, row.status) for row in rows] == [
        (SESSION, "present"),
        (CHILD_ID, "present"),
    ]
    with brought.open("ab") as stream:
        stream.write(
            json.dumps(
                user("and on the desk?", uuid="d", parent="a", ts=990, session_id=CHILD_ID)
            ).encode()
            + b"\n"
        )
    (pushed,) = desk.run_team_verb("push", CHILD_ID)["pushed"]
    assert (pushed["records"], pushed["result"]) == (1, "sent")
    bases = root.execute(
        "select base is null, generation from team.session where session_id = %s order by id",
        (CHILD_ID,),
    )
    assert bases.fetchall() == [(True, 0), (False, 0)]
    assert (
        laptop.run_team_verb("resume", CHILD_ID, "--home", str(laptop.here))["receipt"][
            "session_id"
        ]
        != CHILD_ID
    ), "both sessions are kept"


def test_a_session_is_shared_with_a_colleague(
    people: dict[str, Person], git: Any, root: Connection
) -> None:
    """A colleague continues a shared session as a new session.

    The owner can unshare, forget and delete the session. The model may not search the team unless
    the user allows it.
    """
    laptop, bobs = people["laptop"], people["bobs"]
    path = session_with_child(laptop, git)
    laptop.run_team_verb("join", "alice")
    bobs.run_team_verb("join", "bob")
    laptop.run_team_verb("projects", "add")
    laptop.run_team_verb("push", "--all")
    assert laptop.run_team_verb("share", CHILD_ID, "--with", "bob", "--until", "2020-01-01")[
        "written"
    ]
    assert bobs.run_team_verb("sessions")["sessions"] == []
    assert laptop.run_team_verb("share", CHILD_ID, "--with", "nobody", code=1)["message"].endswith(
        "no such member"
    )
    assert (
        bobs.run_team_verb("share", CHILD_ID, "--with", "team", code=1)["code"]
        == "session-not-found"
    )
    laptop.run_team_verb("share", CHILD_ID, "--with", "bob")
    listed = bobs.run_team_verb("sessions")["sessions"]
    assert [(each["session_id"], each["owner"], each["mine"]) for each in listed] == [
        (CHILD_ID, "alice", False)
    ]
    assert re.search(
        r"as of +20\d\d.* UTC, when that machine last",
        bobs.run("team", "resume", CHILD_ID, "--dry-run"),
    )
    taken = bobs.run_team_verb("resume", "alice:Kumquats")
    assert taken["receipt"]["session_id"] not in {CHILD_ID, SESSION}
    assert "alice's" in taken["warnings"][-1]
    text = Path(taken["receipt"]["file"]).read_text()
    assert "Nobody verified it" in text
    assert CHILD_ID in text
    assert [(link.parent_id, link.kind) for link in read_links(bobs.where)] == [(CHILD_ID, "team")]
    own = taken["receipt"]["session_id"]
    seen = [(row["session_id"], row["status"], row["owner"]) for row in bobs.run_lineage(own)]
    assert seen == [(SESSION, "private", ""), (CHILD_ID, "team", "alice"), (own, "present", "")]
    assert "(private, or never pushed)" in bobs.run("lineage", own, "--team")
    assert "(file gone)" in bobs.run("lineage", own)
    assert "may not search" in bobs.run("lineage", own, "--team", code=2, CLAUDECODE="1")
    (copy,) = bobs.run_team_verb("pull", CHILD_ID)["files"]
    assert "kumquat" in bobs.run("outline", copy)
    laptop.run_team_verb("unshare", CHILD_ID)
    assert bobs.run_team_verb("pull")["gone"] == [CHILD_ID]
    assert not Path(copy).exists()
    assert [(row["session_id"], row["status"]) for row in bobs.run_lineage(own)] == [
        (CHILD_ID, "private"),
        (own, "present"),
    ]

    assert (
        "may not search the team"
        in laptop.run_team_verb("search", "kumquat", code=2, CLAUDECODE="1")["message"]
    )
    laptop.run_team_verb(
        "search", "kumquat", code=2, CLAUDECODE="1", RESUME_HOOKS_TEAM_MODEL_SEARCH="on"
    )
    assert (
        "may not search the team"
        in laptop.run_team_verb("search", "kumquat", code=2, CODEX_THREAD_ID=CHILD_ID)["message"]
    )
    laptop.run("config", "team_model_search", "on")
    assert laptop.run_team_verb("search", "kumquat", CLAUDECODE="1")["hits"]

    assert laptop.run_team_verb("forget", CHILD_ID, code=2)["message"].startswith(
        "Forgetting needs a confirmation"
    )
    assert laptop.run_team_verb("forget", CHILD_ID, "--yes")["copies"] == 1
    assert laptop.run_team_verb("push", CHILD_ID)["pushed"][0]["result"] == "forgotten"
    assert path.exists()
    laptop.run("delete", SESSION, "--yes", "--force")
    assert laptop.run_team_verb("push", "--all")["gone"] == [SESSION]
    assert root.execute("select count(*) from team.session").fetchone() == (0,)
    laptop.run_team_verb("leave")
    assert read_team(laptop.where) is None


def test_adding_a_project_shows_who_added_it_first(people: dict[str, Person], git: Any) -> None:
    """``projects add`` warns a member whose project another member added first.

    The warning says whether that first member has admitted the new one. Before a session is shared
    with the project, ``share`` says who can read the session.
    """
    laptop, bobs = people["laptop"], people["bobs"]
    session_with_child(laptop, git)
    laptop.run_team_verb("join", "alice")
    bobs.run_team_verb("join", "bob")
    key = "example.com/acme/parser"
    with connect.connect_to_team("bob") as db:
        db.run_statement("select team.project_add(%s)", (key,))
    assert laptop.run_team_verb("projects", "add")["warnings"] == [
        f"bob was the first to add the project {key}, and can admit you to it."
    ]
    laptop.run_team_verb("push", CHILD_ID)
    with connect.connect_to_team("bob") as db:
        db.run_statement("select team.project_admit(%s, 'alice', true)", (key,))
    assert laptop.run_team_verb("projects", "add")["warnings"] == [
        (
            f"bob was the first to add the project {key}, and has admitted you to it. "
            "Everyone whom bob admits can read what you share with this project."
        )
    ]
    reach = (
        f"In the project {key}, its owner, bob, decides who joins it; "
        "1 other member can read what you share with it."
    )
    assert laptop.run_team_verb("share", CHILD_ID, "--with", "project", "--dry-run")[
        "warnings"
    ] == [reach]
    assert bobs.run_team_verb("sessions")["sessions"] == []
    assert laptop.run_team_verb("share", CHILD_ID, "--with", "project")["warnings"] == [reach]
    assert len(bobs.run_team_verb("sessions")["sessions"]) == 1
    git(bobs.here, "init", "-q")
    git(bobs.here, "remote", "add", "origin", "https://example.com/acme/parser.git")
    assert bobs.run_team_verb("projects", "add")["warnings"] == []


def test_sessions_in_an_open_transaction_are_reported(
    people: dict[str, Person], git: Any, tmp_path: Path
) -> None:
    """If an open transaction locks sessions of a removed member, ``member remove`` states how many.

    The command also prints the member's new name. A later call with this name removes the sessions.
    """
    bobs, admins = people["bobs"], Person(tmp_path / "office", "admin", people["bobs"]._server)
    session_with_child(bobs, git)
    bobs.run_team_verb("join", "bob")
    admins.run_team_verb("join", "admin")
    bobs.run_team_verb("projects", "add")
    bobs.run_team_verb("push", "--all")
    with connect.connect_to_team("bob") as db, db.transaction():
        db.run_statement("select team.share(%s, 't', '', null)", (CHILD_ID,))
        said = admins.run("team", "member", "remove", "bob", "--yes")
    held = re.fullmatch(
        r"bob is removed. Sessions: 1.\n1 session could not be changed because of an open transaction\. .* for "
        r"the member '(bob \(left, \d+\))'.\n",
        said,
    )
    assert held
    assert admins.run("team", "member", "remove", held[1], "--yes").endswith(
        "is removed. Sessions: 1.\n"
    )


@pytest.mark.part("secrets")
def test_removed_data_is_removed_on_the_server(
    people: dict[str, Person], git: Any, root: Connection
) -> None:
    """After a scrub, a push removes the earlier generations of all rewritten sessions from the server."""
    laptop, secret = people["laptop"], "AKIA" + "QWERTYUIOPASDFGH"
    session_with_child(laptop, git)
    for name, path in laptop.session_files().items():
        with path.open("ab") as stream:
            said = user(
                f"the key is {secret}",
                uuid=f"k{name}",
                ts=995,
                session_id=name,
                cwd=str(laptop.here),
            )
            stream.write(json.dumps(said).encode() + b"\n")
        os.utime(path, (0, 0))
    laptop.run_team_verb("join", "alice")
    laptop.run_team_verb("push", *laptop.session_files())
    text = laptop.run("scrub", SESSION, "--in-place", "--everywhere", "--yes")
    assert all(
        f"To replace the team's copy of {name} from this machine:" in text
        for name in (SESSION, CHILD_ID)
    )
    laptop.run_team_verb("push", "--all")
    rows = root.execute(
        "select session_id, generation from team.session order by generation, session_id"
    ).fetchall()
    assert rows == [(CHILD_ID, 1), (SESSION, 1)], "also of a project that turns' ends don't push"
    laptop.run("delete", CHILD_ID, "--yes", "--force")
    laptop.run("restore", CHILD_ID)
    laptop.run("delete", SESSION, "--yes", "--force")
    assert laptop.run_team_verb("push", "--all")["gone"] == [SESSION]
    assert root.execute("select session_id from team.forgotten").fetchall() == [(SESSION,)]


def test_a_removed_session_is_not_pulled_again(
    people: dict[str, Person], git: Any, root: Connection
) -> None:
    """A pull does not restore a copy that the user removed, unless the user names the session.

    The server keeps a deleted session that another machine pushed.
    """
    laptop, desk = people["laptop"], people["desk"]
    session_with_child(laptop, git)
    laptop.run_team_verb("join", "alice")
    laptop.run_team_verb("push", *laptop.session_files())
    desk.run_team_verb("join", "alice")
    (copy,) = desk.run_team_verb("pull", CHILD_ID)["files"]
    shutil.rmtree(Path(copy).parent)
    pulled = desk.run_team_verb("pull")
    assert (pulled["files"], pulled["gone"], pulled["written"]) == ([], [], False)
    assert not Path(copy).exists()
    assert desk.run_team_verb("pull", CHILD_ID)["files"] == [copy]
    assert Path(copy).exists()

    brought = Path(desk.run_team_verb("resume", CHILD_ID)["receipt"]["file"])
    assert "team" not in desk.run("delete", CHILD_ID, "--yes", "--force")
    assert desk.run_team_verb("push", "--all")["gone"] == []
    assert not brought.exists()
    assert desk.run_team_verb("resume", CHILD_ID)["receipt"]["file"] == str(brought)
    assert brought.exists()

    shutil.rmtree(Path(copy).parent)
    laptop.run_team_verb("forget", CHILD_ID, "--yes")
    assert desk.run_team_verb("pull")["gone"] == [], "nothing was there to remove"
    assert read_pulled_sessions(desk.where) == {}
    assert root.execute("select session_id from team.session").fetchall() == [(SESSION,)]


def test_init_creates_a_team_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer
) -> None:
    """``team init`` creates a team once and needs no superuser. ``--sql`` prints the statements.

    A database with a newer schema is refused, unless the schema says that older engines may use it.
    """
    name = f"fresh_{os.getpid()}"
    with server.connect_as_superuser("postgres") as db:
        db.execute(f"create database {name} owner admin".encode())
    server.write_service_file(name, tmp_path / "services.conf")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    admin = Person(tmp_path / "office", "admin", fork_server)
    assert admin.run_team_verb("join", "alice", code=1)["message"].startswith(
        "The database has no team"
    )
    assert "create schema team" in admin.run_team_verb("init", "admin", "--sql")["sql"]
    assert admin.run_team_verb("init", "admin")["login"] == "admin"
    assert (
        admin.run_team_verb("init", "admin", code=2)["message"]
        == "admin is already a team's database"
    )
    bob = Person(tmp_path / "other", "bob", fork_server)
    assert bob.run_team_verb("join", "bob")["written"]
    assert admin.run("team", "init", "admin", "--upgrade").startswith(
        "The database needs no upgrade."
    )
    with server.connect_as_superuser(name) as db:
        db.execute("update team.about set version = 9, least = 9")
    for words in (["sessions"], ["init", "bob", "--upgrade"]):
        assert bob.run_team_verb(*words, code=1)["message"].startswith(
            "The schema of the team's database has version 9"
        )
    with server.connect_as_superuser(name) as db:
        db.execute("update team.about set version = 9, least = 1")
    assert bob.run_team_verb("sessions")["sessions"] == [], "who made it newer says who may go on"


def test_upgrade_updates_an_old_schema_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer
) -> None:
    """A database with the first schema is refused until its administrator runs ``init --upgrade``."""
    name = f"old_{os.getpid()}"
    with server.connect_as_superuser("postgres") as db:
        db.execute(f"create database {name} owner admin".encode())
    server.write_service_file(name, tmp_path / "services.conf")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    with monkeypatch.context() as patch:
        patch.setattr(connect, "SCHEMA_VERSION", 1)
        with connect.connect_to_team("admin", allows_any_version=True) as old:
            old.run_statement(connect.read_schema_sql())
    bob = Person(tmp_path / "other", "bob", fork_server)
    refused = bob.run_team_verb("join", "bob", code=1)
    assert (refused["message"].split(",")[0], refused["remedy"][-9:]) == (
        "The schema of the team's database has version 1", "--upgrade"
    )  # fmt: skip
    assert bob.run_team_verb("init", "bob", "--upgrade", code=1)["code"] == "team-failed"
    sql = bob.run_team_verb("init", "bob", "--upgrade", "--sql")["sql"]
    assert ("create function expire" in sql, "create schema" in sql) == (True, False)
    admin = Person(tmp_path / "office", "admin", fork_server)
    assert (
        admin.run("team", "init", "admin", "--upgrade")
        == "The database now has schema version 5.\n"
    )
    assert bob.run_team_verb("join", "bob")["written"]


def make_bobs_session(machine_name: str, own_id: str = SESSION) -> TeamSession:
    """Return one of Bob's sessions, from one of his machines."""
    about = ("Fix the parser", "/src", "", "", "", "", "", "private", 1, 1, True, False, (), "")
    return TeamSession(len(machine_name), own_id, "bob", machine_name, *about)


def test_a_locator_finds_the_latest_of_two_machines() -> None:
    """If two machines have a session, a locator finds the copy that was continued last.

    A locator that names a machine finds that machine's copy.
    """
    both = [make_bobs_session("desk"), make_bobs_session("laptop")]
    assert choose_team_session(SESSION[:8], both).machine == "desk"
    assert choose_team_session(f"bob@laptop:{SESSION[:8]}", both).machine == "laptop"
    assert choose_team_session("bob@desk:parser", both).machine == "desk"
    with pytest.raises(AmbiguousLocator):
        choose_team_session("bob:parser", [*both, make_bobs_session("desk", session_id(2))])


def test_a_list_of_many_kinds_of_secrets_fits_a_terminal() -> None:
    """The table of pushed sessions shows the number of secrets, and lists their kinds in short lines."""
    kinds = {f"kind-number-{number}": number for number in range(1, 60)}
    text = format_push_results(
        [PushResult(SESSION, "t" * 80, "sent", 1, 2, 3, 4, kinds)], was_written=True
    )
    assert max(map(len, text.splitlines())) <= 130
    assert "1,770" in text
    assert "59 kind-number-59" in text.replace("\n", " ")


def get_doctor_finding(cwd: Path) -> Finding:
    """Return the finding that ``doctor`` has about the team."""
    return next(finding for finding in check_installation(str(cwd)) if finding.name == "team")


def test_doctor_reports_the_state_of_the_team(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``doctor`` reports membership in a team, a missing driver and a failed push."""
    assert get_doctor_finding(tmp_path).code == "team-none"
    team = {
        "version": 1,
        "service": "work",
        "login": "alice",
        "machine": "m",
        "projects": ["h/o/r"],
    }
    file = config_home.config / "resume-hooks" / "team" / "team.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(team))
    assert (
        get_doctor_finding(tmp_path).detail
        == "work as alice; 1 project pushed automatically after turns, last push never; the server was not contacted"
    )
    monkeypatch.setattr(answers, "find_spec", lambda _: None)
    assert "-m pip install" in get_doctor_finding(tmp_path).remedy
    monkeypatch.setattr(sys, "prefix", str(config_home.config))
    (config_home.config / "requirements.lock").touch()
    assert get_doctor_finding(tmp_path).remedy.endswith("hooks/engine --install --team")
    team_file.record_push_failure(("the server is away", "Wait."), 1, Where(), report_at_once=False)
    assert get_doctor_finding(tmp_path).code == "team-failing"
    assert get_doctor_finding(tmp_path).detail.startswith("1 session has been waiting")
