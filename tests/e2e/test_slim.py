"""``archive --slim`` of a session with large outputs, and a client that resumes the slim copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import SESSION, Record, assistant, session_bytes, tool_result, tool_use, user
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import message_texts_of_request
from tests.e2e.test_fork import client_environ

MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""
"""Runs a command, and prints the most memory that it had, in KB.

A process as large as this one can't tell.
"""

OUTPUT = "".join(f"line {number} of the zebra report\n" for number in range(30_000))
MEMORY = 200_000
"""KB that a slim copy of 200 MB may take: no more than a line of it is held at once.

It took 51,000.
"""


def turns_with_large_outputs(count: int, home: ClientHome) -> list[Record]:
    """Return this number of turns, each with an output of 1 MB."""
    rows: list[Record] = []
    for number in range(count):
        before = f"d{number - 1}" if number else None
        name = f"toolu_{number}"
        rows += [
            user(
                f"what does report {number} say?",
                uuid=f"a{number}",
                parent=before,
                cwd=str(home.cwd),
            ),
            tool_use(name, uuid=f"b{number}", parent=f"a{number}", cwd=str(home.cwd)),
            tool_result(name, OUTPUT, uuid=f"c{number}", parent=f"b{number}", cwd=str(home.cwd)),
            assistant(
                f"nothing of note in {number}",
                uuid=f"d{number}",
                parent=f"c{number}",
                cwd=str(home.cwd),
            ),
        ]
    return rows


@pytest.mark.parametrize("count", [4, pytest.param(210, marks=pytest.mark.wide)])
def test_the_client_continues_a_slim_copy(
    client: ClientVersion, home: ClientHome, api: MockApi, count: int
) -> None:
    """It sends the whole conversation, and for each output its description and location.

    The original does not change.
    """
    giant = Path(
        home.install_session(session_bytes(turns_with_large_outputs(count, home)), SESSION)
    )
    before = (giant.stat().st_size, giant.read_bytes()[-1_000:])
    command = [
        sys.executable,
        "-c",
        MEASURED,
        sys.executable,
        "-m",
        "resume_hooks",
        "archive",
        "--slim",
        SESSION,
    ]
    done = subprocess.run(
        command, env=client_environ(home), cwd=home.cwd, capture_output=True, check=True
    )
    assert int(done.stderr.split()[-1]) < MEMORY
    (slim,) = (path for path in home.sessions() if path != giant)
    assert slim.stat().st_size < 20_000 + 6_000 * count
    sent = run_print(client, home, api, "go on now", resume=slim.stem)
    assert sent.returncode == 0, sent.stderr
    request = api.main_requests()[0]
    said = message_texts_of_request(request)
    assert all(f"what does report {number} say?" in said for number in range(count))
    assert "line 29999 of the zebra report" not in said
    assert said.count("[Results from Read tool suppressed - ") > count  # and the legend
    assert (giant.stat().st_size, giant.read_bytes()[-1_000:]) == before
