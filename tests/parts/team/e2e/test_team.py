"""Tests of a team with the real client.

The session is pushed at the end of a turn. Its user continues it on another machine, and a
colleague continues it, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.team.team_file import PUSH_ENABLED_FILE_NAME, find_team_folder
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage import LineageFinder
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import ENGINE_ENV, text_of_request
from tests.e2e.test_bundle import IMPORT_REMARK
from tests.needs import REPO
from tests.parts.team.server import Connection

SECRET = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"


@pytest.fixture
def other_machines(tmp_path: Path) -> Iterator[list[ClientHome]]:
    """Yield the user's second machine, where the project has a different path, and a colleague's machine."""
    homes = [
        ClientHome(tmp_path / "desk", project="moved"),
        ClientHome(tmp_path / "bobs", project="elsewhere"),
    ]
    yield homes
    for home in homes:
        home.end_processes()


def run_team_command(home: ClientHome, *words: str) -> dict[str, Any]:
    """Run a ``team`` command with ``--json`` as the user would in a shell, and return its data."""
    done = subprocess.run(
        [sys.executable, "-m", "resume_hooks", "team", *words, "--json"],
        env=home.env({"PYTHONPATH": str(REPO / "src"), "PGSERVICEFILE": os.environ["PGSERVICEFILE"]}),
        cwd=home.cwd, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout)["data"])


def is_complete_on_server(root: Connection, session: Path) -> bool:
    """Check whether the server has every record of a session's file."""
    query = """select count(*) from team.part p join team.session s on s.id = p.session
      where s.live and s.session_id = %s and p.name = '' and p.records = %s"""
    lines = len(session.read_bytes().splitlines())
    return root.execute(query, (session.stem, lines)).fetchone() != (0,)


@pytest.mark.usefixtures("database")
def test_the_server_has_every_record_after_a_clients_end(
    client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    root: Connection,
) -> None:
    """After the client ends, the server gets every record of the session.

    The client ends after ``-p``, by ``/exit``, or because its terminal is closed. If it is killed,
    the next start of the client pushes the missing records.
    """
    run_team_command(home, "join", "alice")
    run_team_command(home, "projects", "add")
    env = ENGINE_ENV | {
        "RESUME_HOOKS_CLIPBOARD": "none",
        "PGSERVICEFILE": os.environ["PGSERVICEFILE"],
    }
    pushes = Path(find_team_folder(Where(home.env())), PUSH_ENABLED_FILE_NAME)
    run_print(client, home, api, "one more thing", plugin_dir=plugin, extra_env=env)
    (printed,) = home.sessions()
    assert wait_until(lambda: is_complete_on_server(root, printed))
    session = printed
    for ending in ("kill", "exit", "hangup"):
        with Tui(client, home, api) as tui:
            tui.start(plugin_dir=plugin, extra_env=env)
            assert wait_until(lambda session=session: is_complete_on_server(root, session))  # type: ignore[misc]
            # The file's new modification time delays the push at the end of the next turn.
            os.utime(pushes)
            tui.submit(f"the last before {ending}")
            tui.wait_for(rf"the last before {ending}(?:.*\n)+?.*Mock reply")
            tui.wait_until_idle()
            if ending == "exit":
                tui.submit("/exit")
            else:
                os.kill(tui.pid, signal.SIGHUP if ending == "hangup" else signal.SIGKILL)
            assert wait_until(lambda tui=tui: not tui.is_running())  # type: ignore[misc]
        session = home.sessions()[-1]
        if ending != "kill":  # After a kill, the next start pushes the records.
            assert wait_until(lambda session=session: is_complete_on_server(root, session)), ending  # type: ignore[misc]


@pytest.mark.usefixtures("database")
def test_a_session_continues_on_another_machine(
    client: ClientVersion,
    home: ClientHome,
    other_machines: list[ClientHome],
    api: MockApi,
    plugin: Path,
    root: Connection,
) -> None:
    """A pushed session continues on the user's other machine, where the project has a different path.

    The model on that machine gets the whole conversation without secrets. If a fork is shared with
    a colleague, the colleague can also continue it.
    """
    desk, bobs = other_machines
    run_team_command(home, "join", "alice")
    run_team_command(home, "projects", "add")
    with Tui(client, home, api) as tui:
        env = ENGINE_ENV | {
            "RESUME_HOOKS_CLIPBOARD": "none",
            "PGSERVICEFILE": os.environ["PGSERVICEFILE"],
        }
        tui.start(plugin_dir=plugin, extra_env=env)
        tui.submit(f"the key is {SECRET}, the fruit is a kumquat")
        tui.wait_for("Mock reply 1")

        def has_arrived() -> bool:
            return root.execute("select count(*) from team.chunk").fetchone() != (0,)

        assert wait_until(has_arrived), "the turn's end pushes by itself"
    (row,) = run_team_command(home, "push")["pushed"]
    name = row["session_id"]
    run_team_command(desk, "join", "alice")
    came = run_team_command(desk, "resume", name)
    assert came["receipt"]["session_id"] == name
    api.clear_requests()
    assert run_print(client, desk, api, "and on the desk?", resume=name).returncode == 0
    text = text_of_request(api.main_requests()[-1])
    assert "the fruit is a kumquat" in text
    assert (SECRET in text, "[secret removed: github-pat]" in text) == (False, True)
    first = run_team_command(desk, "push", name)["pushed"][0]
    assert 0 < first["records"] < row["records"] + 20
    child = run_print(
        client, desk, api, "a fork", resume=name, extra_args=["--fork-session"]
    ).session_id
    run_team_command(desk, "push", child)
    assert run_print(client, home, api, "here again", resume=name).returncode == 0
    assert run_team_command(home, "push", name)["pushed"][0]["result"] in {
        "sent",
        "unchanged",
    }, "the end of the run may have pushed the session already"
    assert is_complete_on_server(root, next(path for path in home.sessions() if path.stem == name))
    assert root.execute(
        "select count(*), count(distinct session_id) from team.session where live"
    ).fetchone() == (3, 2)

    fetched = run_team_command(home, "resume", child)
    environ = {"CLAUDE_CONFIG_DIR": str(home.config), "HOME": str(home.root)}
    rows = LineageFinder(Where(environ)).find_lineage(fetched["receipt"]["file"])
    assert [(each.session_id, each.status) for each in rows][-1] == (child, "present")
    run_team_command(bobs, "join", "bob")
    run_team_command(desk, "share", child, "--with", "bob")
    taken = run_team_command(bobs, "resume", child[:8])["receipt"]["session_id"]
    assert taken != child
    api.clear_requests()
    assert run_print(client, bobs, api, "I take over", resume=taken).returncode == 0
    text = text_of_request(api.main_requests()[-1])
    assert text.count(IMPORT_REMARK) == 1
    assert "the fruit is a kumquat" in text
    assert "and on the desk?" in text
    assert SECRET not in text
