"""Tests that a client can resume the copy that ``archive --slim`` writes.

The original session has large outputs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import SESSION, Record, assistant, session_bytes, tool_result, tool_use, user
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import text_of_request
from tests.e2e.test_fork import client_environ

MEASURING_PROGRAM = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""
"""A program that runs a command and prints the command's peak memory in KB.

It must be small and separate, because a new process starts with its parent's memory size.
"""

LARGE_OUTPUT = "".join(f"line {number} of the zebra report\n" for number in range(30_000))
MAX_MEMORY_KB = 200_000
"""Maximum memory in KB for writing a slim copy of a 200 MB session.

The measured value was 51,000 KB. The program reads one line at a time.
"""


def turns_with_large_outputs(turn_count: int, home: ClientHome) -> list[Record]:
    """Return ``turn_count`` turns, each with an output of 1 MB."""
    rows: list[Record] = []
    for number in range(turn_count):
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
            tool_result(
                name, LARGE_OUTPUT, uuid=f"c{number}", parent=f"b{number}", cwd=str(home.cwd)
            ),
            assistant(
                f"nothing of note in {number}",
                uuid=f"d{number}",
                parent=f"c{number}",
                cwd=str(home.cwd),
            ),
        ]
    return rows


@pytest.mark.parametrize("turn_count", [4, pytest.param(210, marks=pytest.mark.wide)])
def test_the_client_continues_a_slim_copy(
    client: ClientVersion, home: ClientHome, api: MockApi, turn_count: int
) -> None:
    """The client resumes a slim copy and sends a short description in place of each large output.

    ``archive --slim`` needs little memory and does not change the original.
    """
    giant = Path(
        home.install_session(session_bytes(turns_with_large_outputs(turn_count, home)), SESSION)
    )
    before = (giant.stat().st_size, giant.read_bytes()[-1_000:])
    command = [
        sys.executable,
        "-c",
        MEASURING_PROGRAM,
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
    assert int(done.stderr.split()[-1]) < MAX_MEMORY_KB
    (slim,) = (path for path in home.sessions() if path != giant)
    assert slim.stat().st_size < 20_000 + 6_000 * turn_count
    sent = run_print(client, home, api, "go on now", resume=slim.stem)
    assert sent.returncode == 0, sent.stderr
    request = api.main_requests()[0]
    said = text_of_request(request)
    assert all(f"what does report {number} say?" in said for number in range(turn_count))
    assert "line 29999 of the zebra report" not in said
    # The legend contains these words, too.
    assert said.count("[Results from Read tool suppressed - ") > turn_count
    assert (giant.stat().st_size, giant.read_bytes()[-1_000:]) == before
