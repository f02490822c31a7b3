"""Tests how often a verb opens the file of its session, because this file may be large."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.builders import SESSION, ConfigHome, write_session
from tests.hooks.test_rollover import SUMMARY_ANSWER
from tests.hooks.test_trim import turns_with_large_files
from tests.needs import REPO
from tests.stand_in import write_stand_in

VERB_CALL_SCRIPT = "from resume_hooks.cli.main import run; run(sys.argv[2:])"
PROMPT_HOOK_SCRIPT = "from resume_hooks.hooks.prompt import main; main()"

COUNTING_SCRIPT = """
import os, sys
sys.path.insert(0, {source!r})
opened = 0

def count(event, arguments):
    global opened
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        opened += os.path.basename(os.fsdecode(arguments[0])) == sys.argv[1]

sys.addaudithook(count)
try:
    {work}
finally:
    sys.stdout.flush()
    print(opened, file=sys.stderr)
"""

CHILD_COMMANDS = (
    ">handoff fix the tests",
    ">resume",
    ">trim",
    ">trim yes",
    "handoff",
    "trim",
    "untrim",
    "fork",
    "rollover",
    "rollover --quick",
)
MAX_FILE_OPENS = 3
"""Maximum number of opens: one to read the session, one to copy or compare it, and one to archive it.

For ``untrim``, the session is the trimmed one. For other verbs it is the parent of the child.
"""


class OpenCounter:
    """A home with one session that can be trimmed. It counts the opens of the session's file."""

    def __init__(self, home: ConfigHome) -> None:
        self._home = home
        self._path = write_stand_in(home.root, SUMMARY_ANSWER).path
        write_session(home.project(), SESSION, turns_with_large_files())

    def count_opens(self, verb: str, session_id: str = SESSION) -> int:
        """Run a verb or a prompt, and return how many times it opens its session's file."""
        is_prompt = verb.startswith(">")
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": session_id,
            "prompt": verb,
            "cwd": "/",
        }
        words = [] if is_prompt else [*verb.split(), session_id]
        script = COUNTING_SCRIPT.format(
            source=str(REPO / "src"), work=PROMPT_HOOK_SCRIPT if is_prompt else VERB_CALL_SCRIPT
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, f"{session_id}.jsonl", *words],
            input=json.dumps(event).encode() if is_prompt else b"",
            env={**self._home.environ, "PATH": self._path, "RESUME_HOOKS_CLIPBOARD": "none"},
            cwd=self._home.root,
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stdout
        return int(done.stderr.split()[-1])

    def child_id(self) -> str:
        """Return the id of the only child."""
        (child,) = [path.stem for path in self._home.project().iterdir() if path.stem != SESSION]
        return child


@pytest.fixture
def open_counter(config_home: ConfigHome) -> OpenCounter:
    """Return a counter of how often a session's file is opened."""
    return OpenCounter(config_home)


@pytest.mark.parametrize("verb", CHILD_COMMANDS)
def test_a_verb_opens_its_session_at_most_three_times(open_counter: OpenCounter, verb: str) -> None:
    """A verb or trigger opens its session's file at most three times."""
    session_id = SESSION
    if verb == ">trim yes":
        open_counter.count_opens(">trim")
    if verb == "untrim":
        open_counter.count_opens("trim")
        session_id = open_counter.child_id()
    count = open_counter.count_opens("untrim --all" if verb == "untrim" else verb, session_id)
    print(f"{verb}: {count} opens")
    assert 1 <= count <= MAX_FILE_OPENS
