"""Fixtures that run the command line in a separate process and environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.cli.verb_table import VERB_ALIASES
from tests.builders import ConfigHome
from tests.cli.fork_server import ForkServer
from tests.cli.terminal_home import TerminalHome
from tests.needs import REPO

Cli = Callable[..., "subprocess.CompletedProcess[bytes]"]
Document = Callable[..., dict[str, Any]]


@pytest.fixture
def cli(config_home: ConfigHome, fork_server: ForkServer) -> Cli:
    """Return a function that runs ``resume-hooks`` with the given words in an empty folder.

    PATH contains no client, and the clipboard is off.
    """
    here = config_home.root / "here"
    here.mkdir()

    def run_command(
        *words: str, environ: dict[str, str] | None = None, stdin: bytes = b"", cwd: object = here
    ) -> subprocess.CompletedProcess[bytes]:
        env = {
            "PATH": f"/usr/bin:/bin:{os.path.dirname(sys.executable)}",
            "PYTHONPATH": str(REPO / "src"),
            "RESUME_HOOKS_CLIPBOARD": "none",
            **config_home.environ,
            **(environ or {}),
        }
        if not any(name.startswith("PYTHON") for name in (environ or {})):
            return fork_server.run(words, env, stdin, str(cwd), 60)
        command = [sys.executable, "-m", "resume_hooks", *words]
        return subprocess.run(
            command,
            input=stdin,
            env=env,
            cwd=str(cwd),
            capture_output=True,
            check=False,
            timeout=60,
        )

    return run_command


@pytest.fixture
def document(cli: Cli) -> Document:
    """Return a function that runs a verb with ``--json`` and returns its document.

    The function checks the document against the schema and the exit code against ``code``.
    """

    def run_verb(verb: str, *words: str, code: int = 0, **options: Any) -> dict[str, Any]:
        done = cli(verb, *words, "--json", **options)
        verb = VERB_ALIASES.get(verb, (verb,))[0]
        assert (done.returncode, done.stderr) == (code, b"")
        found = json.loads(done.stdout)
        assert (found["schema"], found["verb"], found["ok"]) == (1, verb, code == 0)
        if found["ok"]:
            assert set(found) == {"schema", "verb", "ok", "data", "warnings"}
            assert (
                schema_of_verb(verb).model_validate(found["data"]).model_dump(mode="json")
                == found["data"]
            )
        else:
            assert set(found) == {"schema", "verb", "ok", "error"}
            assert (
                {"code", "message", "remedy"}
                <= set(found["error"])
                <= {"code", "message", "remedy", "candidates"}
            )
        return dict(found)

    return run_verb


@pytest.fixture
def terminal_home(config_home: ConfigHome) -> Iterator[TerminalHome]:
    """Return a home with terminals, which are closed after the test."""
    with ExitStack() as stack:
        yield TerminalHome(config_home, stack)
