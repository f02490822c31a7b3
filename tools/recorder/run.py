"""Run the scenarios on a checkout. For each step, write a line of JSON and the files that it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from tools.recorder import matrix
from tools.recorder.home import RecorderHome, find_new_session, find_session_id
from tools.recorder.matrix import Scenario, Step
from tools.recorder.sessions import CODEX, Session

NO_ENTRY_POINT_EXIT_CODE = -1
"""The exit code that is recorded if the checkout does not have the entry point."""

MAX_IDS_PER_STEP = 0x1000
"""The maximum number of new ids in a step. If a step has more ids, the next step repeats some of
them."""

LAUNCHER_ARGUMENTS = {
    matrix.PROMPT: ("--hook", "prompt"),
    matrix.MODULE: ("--module",),
    matrix.SESSION: ("--hook", "session"),
    matrix.NOTICE: ("--hook", "notice"),
    matrix.CODEX_EVENT: ("--hook", "codex", "compact"),
}
"""For each entry point of the clients, the arguments of the checkout's launcher."""


def find_scripts(tree: Path) -> dict[str, str]:
    """Return the path of each entry point's script, relative to the checkout.

    The launcher is run with a Python that only prints the name of the script.
    """
    scripts = {matrix.CLI: ""}
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python")
        python.write_text('#!/bin/sh\n[ "$2" = -c ] || printf %s "$2"\n', encoding="utf-8")
        python.chmod(0o700)
        environ = {"PATH": "/usr/bin:/bin", "HOME": folder, "RESUME_HOOKS_PYTHON": str(python)}
        for entry_point, words in LAUNCHER_ARGUMENTS.items():
            command = ["/bin/sh", str(tree / "hooks" / "engine"), *words]
            result = subprocess.run(
                command, env=environ, input=b"{}", capture_output=True, check=False, timeout=60
            )
            script = result.stdout.decode()
            scripts[entry_point] = os.path.relpath(script, tree) if script.endswith(".py") else ""
    return scripts


class Runner:
    """Runs the driver of a checkout and writes the record."""

    def __init__(self, tree: Path, home: RecorderHome, record: TextIO) -> None:
        self._home, self._record = home, record
        self._scripts = find_scripts(tree)
        home.empty_home()
        program = Path(__file__).with_name("driver.py")
        # Do not use -I, which ignores PYTHONHASHSEED: sets must have the same order in every run.
        command = [
            str(tree / ".venv" / "bin" / "python"),
            "-s",
            "-P",
            str(program),
            f"{home.root}/tree",
        ]
        environ = {**home.environ(), "PYTHONHASHSEED": "0"}
        pipe = subprocess.PIPE
        self._driver = subprocess.Popen(
            command, env=environ, cwd="/", stdin=pipe, stdout=pipe, text=True
        )
        home.driver_pid = self._driver.pid
        self.count = 0

    def close(self) -> None:
        """End the driver's process."""
        self._driver.communicate(timeout=60)

    def record_session(self, session: Session, scenarios: Iterable[Scenario]) -> None:
        """Run each scenario in a new home that contains the session."""
        for number, scenario in enumerate(scenarios):
            self._home.empty_home()
            path = self._home.add_session(session)
            if any(step.entry_point == matrix.MODULE for step in scenario):
                self._home.register_client()
            if any("{work}/given.jsonl" in step.arguments for step in scenario):
                (self._home.work / "given.jsonl").write_bytes(session.content)
            self._home.record_file_states()
            self._run_scenario(
                f"{session.agent}/{session.name}/{number:02d}", scenario, session, path
            )

    def record_home(self, name: str, sessions: Iterable[Session], scenario: Scenario) -> None:
        """Run a scenario in a home that contains all the sessions."""
        self._home.empty_home()
        for session in sessions:
            last, path = session, self._home.add_session(session)
        self._home.record_file_states()
        self._run_scenario(name, scenario, last, path)

    def _run_scenario(self, name: str, scenario: Scenario, session: Session, path: str) -> None:
        work, child = str(self._home.work), ""
        for number, step in enumerate(scenario):
            if not child and (step.is_in_child or "{child}" in step.arguments):
                continue  # The previous step made no child.
            asking_session = (
                (find_session_id(child), child) if step.is_in_child else (session.session_id, path)
            )
            event = {
                "session_id": asking_session[0],
                "transcript_path": asking_session[1],
                "cwd": work,
                **step.event_fields,
            }
            if session.agent == CODEX:
                event |= {"turn_id": "1", "model": "gpt-5"}
            if event.get(matrix.MESSAGES_FIELD):
                event[matrix.MESSAGES_FIELD] = list_messages(session)
            event_text = "" if step.entry_point == matrix.CLI else json.dumps(event)
            names = {"{id}": session.session_id, "{work}": work, "{child}": find_session_id(child)}
            exit_code = self._ask_driver(
                step,
                [_fill_placeholders(word, names) for word in step.arguments],
                event_text,
                number,
            )
            changed = self._home.list_changes(number)
            child = find_new_session(changed) or child
            self._write_row(f"{name}.{number} {step.name}", exit_code, changed)

    def _ask_driver(
        self, step: Step, arguments: list[str], event_text: str, step_number: int
    ) -> int:
        streams = self._home.streams
        (streams / "stdin").write_text(event_text, encoding="utf-8")
        script = self._scripts[step.entry_point]
        if step.entry_point != matrix.CLI and not script:
            return NO_ENTRY_POINT_EXIT_CODE
        request = {
            "script": f"{self._home.root}/tree/{script}" if script else "",
            "words": arguments,
            "environ": {**self._home.environ(), **step.environ},
            "cwd": str(self._home.work),
            "first_id": step_number * MAX_IDS_PER_STEP,
            **{name: str(streams / name) for name in ("stdin", "stdout", "stderr")},
        }
        stdin, stdout = self._driver.stdin, self._driver.stdout
        if stdin is None or stdout is None:
            raise SystemExit("The driver has no pipes.")
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise SystemExit(f"The driver ended with {self._driver.wait()}.")
        return int(answer)

    def _write_row(self, case: str, exit_code: int, changed_paths: list[str]) -> None:
        row: dict[str, Any] = {"case": case, "exit": exit_code}
        for name in ("stdout", "stderr"):
            path = self._home.streams / name
            content = path.read_bytes() if path.exists() else b""
            path.unlink(missing_ok=True)
            row[name] = self._home.normalize_content(content).decode("utf-8", "backslashreplace")
        row["files"] = [self._home.describe_file(path) for path in changed_paths]
        self._record.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.count += 1


def _fill_placeholders(word: str, value_by_placeholder: dict[str, str]) -> str:
    for name, value in value_by_placeholder.items():
        word = word.replace(name, value)
    return word


def list_messages(session: Session) -> list[dict[str, Any]]:
    """Return the messages of a session in the form in which a client gives them to the module.

    The list contains one message for every record of the user or the model, in order.
    """
    messages = []
    for line in session.content.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict) or record.get("type") not in {"user", "assistant"}:
            continue
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = (
            [block for block in content if isinstance(block, dict)]
            if isinstance(content, list)
            else []
        )
        calls = [
            block["id"] for block in blocks if block.get("type") == "tool_use" and "id" in block
        ]
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        row = {
            "handle": record.get("uuid"),
            "role": record["type"],
            "calls": calls,
            "results": results,
        }
        messages.append(row)
    return messages


def select_one_per_path(sessions: list[Session]) -> Iterator[Session]:
    """Yield the sessions that fit into one home: the first session for each path."""
    known_paths: set[str] = set()
    for session in sessions:
        if session.path_in_home not in known_paths:
            known_paths.add(session.path_in_home)
            yield session
