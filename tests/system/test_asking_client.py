"""Tests that a process is recognized as started by the client only if the client itself started it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.builders import ConfigHome
from tests.needs import REPO

ASKING_SCRIPT = f"""
import sys
sys.path.insert(0, {str(REPO / "src")!r})
from resume_hooks.paths import Where
from resume_hooks.system.processes import is_started_by_client
print(is_started_by_client(Where()))
"""

STAND_IN_CLIENT_SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
ask, how, own, start, forge = sys.argv[1:]
folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "sessions")
folder.mkdir(exist_ok=True)
born = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
if start != "none":
    note = {"pid": os.getpid(), "procStart": born if start == "true" else start}
    (folder / f"{os.getpid()}.json").write_text(json.dumps(note))
python = [sys.executable, "-I", "-c", ask]
write = '''
born=$(cut -d" " -f22 /proc/$$/stat)
printf '{"pid": %s, "procStart": "%s"}' $$ $born >"$CLAUDE_CONFIG_DIR/sessions/$$.json"
'''
move = '''
export CLAUDE_CONFIG_DIR="$CLAUDE_CONFIG_DIR/another"
mkdir -p "$CLAUDE_CONFIG_DIR/sessions"
'''
shells = {
    "itself": python,
    "exec": ["sh", "-c", 'exec "$@"', "sh", *python],
    "shell": ["sh", "-c", {"forged": write, "elsewhere": move + write}.get(forge, "") + '"$@"; true', "sh", *python],
}
subprocess.run(shells[how], start_new_session=own == "own", check=True)
"""
"""A stand-in for the client: it lists itself and starts a process in one of several ways."""

UNRECOGNIZED_PROCESSES = [
    (
        "exec",
        "own",
        "true",
        "plain",
        "the model's shell, with exec: the parent is the client, its session is not",
    ),
    ("shell", "own", "true", "plain", "the model's shell"),
    ("shell", "own", "true", "forged", "a shell that lists itself, below the client"),
    ("shell", "same", "true", "forged", "the same, had the client left it in its session"),
    ("shell", "own", "true", "elsewhere", "a shell that lists itself in a config home of its own"),
    ("shell", "same", "true", "plain", "a shell between"),
    ("itself", "same", "none", "plain", "a program that is no client"),
    ("itself", "same", "12", "plain", "a number that went to another process"),
]


def result_in_started_process(home: ConfigHome, *start_options: str) -> str:
    """Return the answer that a process gets if the stand-in client starts it with these options."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", STAND_IN_CLIENT_SCRIPT, ASKING_SCRIPT, *start_options],
        env={"PATH": os.environ["PATH"], **home.environ},
        capture_output=True, encoding="utf-8", check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_the_clients_child_process_is_recognized(config_home: ConfigHome) -> None:
    """A process that the client started directly, or through a launcher, is recognized."""
    assert result_in_started_process(config_home, "itself", "same", "true", "plain") == "True"
    assert result_in_started_process(config_home, "exec", "same", "true", "plain") == "True"


@pytest.mark.parametrize(
    ("starter", "kernel_session", "start_time", "list_entry", "description"),
    UNRECOGNIZED_PROCESSES,
    ids=[row[-1] for row in UNRECOGNIZED_PROCESSES],
)
def test_no_other_process_is_recognized(
    config_home: ConfigHome,
    starter: str,
    kernel_session: str,
    start_time: str,
    list_entry: str,
    description: str,
) -> None:
    """A process that the client did not start itself is not recognized.

    Even a forged entry in the client's files does not change the result.
    """
    assert (
        result_in_started_process(config_home, starter, kernel_session, start_time, list_entry)
        == "False"
    ), description


def test_a_damaged_client_entry_is_ignored(config_home: ConfigHome) -> None:
    """An entry in the client's list of processes is ignored if it is broken or names another process."""
    folder = config_home.config / "sessions"
    folder.mkdir()
    for content in ("{", "[]", json.dumps({"pid": "x"})):
        (folder / f"{os.getpid()}.json").write_text(content)
        done = subprocess.run(
            [sys.executable, "-I", "-c", ASKING_SCRIPT],
            env=config_home.environ,
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stdout == b"False\n"
