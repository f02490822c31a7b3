"""Run ``claude -p`` with one prompt and a time limit, and parse the stream of events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness.home import ClientHome
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.versions import ClientVersion

# Linux refuses arguments of 128 KiB or more, so a longer prompt is sent through stdin.
_MAX_ARGUMENT_BYTES = 100_000


@dataclass(frozen=True)
class PrintResult:
    """The result of a ``claude -p`` run: exit code, stream-json events, final text and stderr."""

    returncode: int
    events: list[dict[str, Any]]
    text: str
    stderr: str

    @property
    def session_id(self) -> str:
        """The id of the client's session, or "" if the client did not report it."""
        return next(
            (str(event["session_id"]) for event in self.events if "session_id" in event), ""
        )


def client_arguments(
    resume: str | None, plugin_dir: Path | None, extra: Sequence[str]
) -> list[str]:
    """Return the options of a client, in an order that every version of the client can parse.

    ``run_print`` and the terminals use these options.
    """
    plugin = ["--plugin-dir", str(plugin_dir)] if plugin_dir else []
    return [*plugin, *(["--resume", resume] if resume else []), *extra]


def run_print(
    version: ClientVersion,
    home: ClientHome,
    api: MockApi,
    prompt: str,
    *,
    resume: str | None = None,
    plugin_dir: Path | None = None,
    extra_args: Sequence[str] = (),
    extra_env: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> PrintResult:
    """Run one prompt through ``claude -p`` in the home's project.

    Raises AssertionError if the client does not end within ``timeout`` seconds.
    """
    by_stdin = len(prompt.encode()) > _MAX_ARGUMENT_BYTES
    command = [*version.command, "-p", *([] if by_stdin else [prompt])]
    command += ["--output-format", "stream-json", "--verbose"]
    command += client_arguments(resume, plugin_dir, extra_args)
    env = home.env(api.client_env() | dict(extra_env or {}))
    code, out, err = _run(command, home.cwd, env, prompt if by_stdin else "", timeout)
    events = [json.loads(line) for line in out.split("\n") if line.startswith("{")]
    return PrintResult(code, events, _final_text(events), err)


def _run(
    command: list[str], cwd: Path, env: dict[str, str], stdin: str, timeout: float
) -> tuple[int, str, str]:
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        encoding="utf-8",
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            msg = f"the client took over {timeout} s\nstdout: {out[-2000:]}\nstderr: {err[-2000:]}"
            raise AssertionError(msg) from error
    return process.returncode, out, err


def _final_text(events: Sequence[Mapping[str, Any]]) -> str:
    results = [event for event in events if event.get("type") == "result"]
    return str(results[-1].get("result", "")) if results else ""
