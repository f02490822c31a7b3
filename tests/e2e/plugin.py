"""Build the plugin for the end-to-end tests. Its engine runs with the tests' Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resume_hooks.system.plugin_files import assemble_plugin
from tests.e2e.harness.api_requests import Request
from tests.e2e.harness.client import ClientHome, Terminal
from tests.e2e.harness.processes import wait_until
from tests.needs import REPO

ENGINE_ENV = {"RESUME_HOOKS_PYTHON": sys.executable}
LINEAGE_MARKER = "[SESSION LINEAGE]"

PARENT_ID = "22222222-aaaa-4bbb-8ccc-000000000001"
SOURCE_SESSION = "entireio__cli/130d7b7e-5801-4345-9bd6-f32fd9b8429b.jsonl"
"""A real session of 500 KB. Half of it is tool output."""


def build_plugin(folder: Path) -> Path:
    """Build the plugin in ``folder``.

    Its Python modules are already compiled, as they are after a user's first session.
    """
    assemble_plugin(str(folder))
    for compiled in (REPO / "src").rglob("__pycache__"):
        # Temporary files are skipped because another worker may be writing them now.
        whole = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(compiled, folder / compiled.relative_to(REPO), ignore=whole)
    return folder


def text_of_request(request: Request) -> str:
    """Return all texts in a request's messages, including system reminders."""
    return "\n".join(_strings_in(request.get("messages")))


def _strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings_in(inner)]
    return (
        [text for inner in value for text in _strings_in(inner)] if isinstance(value, list) else []
    )


def data_of_verb(home: ClientHome, *words: str) -> dict[str, Any]:
    """Run a verb in the client's home, and return the data of its JSON output."""
    done = subprocess.run(
        [sys.executable, "-m", "resume_hooks", *words, "--json"],
        env=home.env({"PYTHONPATH": str(REPO / "src")}),
        cwd=home.cwd,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return dict(answer["data"])


def children_of_session(home: ClientHome, parent: Path) -> list[Path]:
    """Return the project's sessions whose first line names ``parent`` as their parent."""
    marker = f'"parent_session_id":"{parent.stem}"'.encode()
    return [
        path
        for path in home.sessions()
        if path != parent and marker in path.read_bytes().split(b"\n", 1)[0]
    ]


def wait_for_child(home: ClientHome, parent: Path) -> Path:
    """Wait until a session has one child, and return the child.

    The client runs the module's commands in the background.
    """
    wait_until(lambda: bool(children_of_session(home, parent)))
    (child,) = children_of_session(home, parent)
    return child


def path_of_open_session(tui: Terminal) -> Path:
    """Ask the client which session is open, and return the path of the session's file."""
    entry = tui.home.config / "sessions" / f"{tui.pid}.json"
    return tui.home.project_folder / f"{json.loads(entry.read_text())['sessionId']}.jsonl"


def model_that_waits_for_removal(*paths: Path) -> Callable[[Request], None]:
    """Return a script that waits until the client has removed ``paths``, and then replies.

    The client's cleanup runs about five seconds after the client's start.
    """

    def wait_for_removal(_: Request) -> None:
        wait_until(lambda: not any(path.exists() for path in paths))

    return wait_for_removal


def remove_module(plugin: Path) -> Path:
    """Remove the module from a plugin, and return the plugin's folder.

    Every client then behaves like a client that does not support modules.
    """
    path = plugin / "hooks" / "hooks.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["modules"]
    path.write_text(json.dumps(document), encoding="utf-8")
    return plugin
