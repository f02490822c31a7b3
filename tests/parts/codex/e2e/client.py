"""The real Codex CLI in tests: pinned versions, a temporary home, and runs of ``codex exec``.

No request leaves the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.builders import SESSION_ID_PATTERN
from tests.e2e.harness.processes import end_processes_with_setting
from tests.e2e.harness.versions import clients_folder
from tests.needs import require_for_test
from tests.parts.codex.e2e.responses import Item, MockResponses

NEWEST, OLDEST_VERSION = "0.171.0", "0.104.0"
CODEX_VERSIONS = (OLDEST_VERSION, "0.125.0", "0.144.6", "0.156.1", "0.169.0", NEWEST)
PROVIDER_NAME = "mock"
PROBE_PROMPT = "PROBE: go on"
COMPACTION_REQUEST_START = "CONTEXT CHECKPOINT COMPACTION"
"""The first words of Codex's request for the compaction of a session that is too long."""

_CONFIG_TEMPLATE = """\
model = "gpt-5"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
{config_text}
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "{address}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[projects."{cwd}"]
trust_level = "trusted"
"""


def find_codex_program(version: str) -> Path:
    """Return the path of this version's program. If the version is not installed, skip or fail the test."""
    vendor = clients_folder() / f"codex-{version}" / "node_modules" / "@openai" / "codex" / "vendor"
    found = sorted([*vendor.glob("*/bin/codex"), *vendor.glob("*/codex/codex")])
    require_for_test(
        f"Codex {version}",
        found,
        "sh tools/clients (it needs npm; with RUN_ALL=1 for every version)",
    )
    return found[0]


class CodexHome:
    """A temporary HOME with a CODEX_HOME and one trusted project folder, for one version of Codex."""

    def __init__(self, root: Path, api: MockResponses, version: str, config_text: str = "") -> None:
        """Make the folders under ``root``. ``config_text`` is inserted at the top of ``config.toml``."""
        self.root, self.api, self.version = root.resolve(), api, version
        self.binary = find_codex_program(version)
        self.codex, self.cwd = self.root / ".codex", self.root / "project"
        for folder in (self.codex, self.cwd):
            folder.mkdir(parents=True)
        text = _CONFIG_TEMPLATE.format(address=api.address, cwd=self.cwd, config_text=config_text)
        (self.codex / "config.toml").write_text(text, encoding="utf-8")

    def env(self) -> dict[str, str]:
        """Return the client's whole environment, which inherits only PATH.

        Every proxy variable leads to the mock, which refuses proxy connections.
        """
        proxied = dict.fromkeys(
            ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), self.api.address
        )
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.root),
            "CODEX_HOME": str(self.codex),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "MOCK_KEY": "x",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            **proxied,
        }

    def rollouts(self) -> list[Path]:
        """Return the session files sorted by name, which is also the order of time."""
        return sorted(
            (self.codex / "sessions").rglob("rollout-*.jsonl"), key=lambda path: path.name
        )

    def add_rollout(self, source: Path, cwd: Path | None = None) -> Path:
        """Copy a rollout to the folder of sessions, with the mock as its provider, and return its path.

        In Codex 0.169, no session can change its provider. ``cwd`` replaces the session's folder.
        """
        day = re.match(r"rollout-(\d{4})-(\d\d)-(\d\d)", source.name)
        assert day, source.name
        target = self.codex.joinpath("sessions", *day.groups(), source.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        told = {"model_provider": PROVIDER_NAME, **({"cwd": str(cwd)} if cwd else {})}
        target.write_bytes(
            b"".join(
                _add_field(line, told) for line in source.read_bytes().splitlines(keepends=True)
            )
        )
        target.chmod(0o600)
        return target

    def run(
        self, *words: str, extra_env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run Codex with these arguments in the project."""
        return subprocess.run(
            [self.binary, *words],
            cwd=self.cwd,
            env=self.env() | dict(extra_env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def resume(self, thread: str, prompt: str = PROBE_PROMPT) -> list[Item]:
        """Resume a session with a prompt, and return the items of the first request.

        Raises AssertionError with Codex's output if Codex sends no request.
        """
        before = len(self.api.inputs)
        done = self.run("exec", "--skip-git-repo-check", "resume", thread, prompt)
        sent = self.api.inputs[before:]
        assert sent, (
            f"codex {self.version} asked nothing: {done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        )
        return sent[0]

    def end_processes(self) -> None:
        """Kill every process that is still running with this home."""
        end_processes_with_setting(f"HOME={self.root}")


def thread_id_of_path(path: Path) -> str:
    """Return the first id in a rollout's file name."""
    return str(re.findall(SESSION_ID_PATTERN, path.name)[0])


def _add_field(line: bytes, fields: Mapping[str, str]) -> bytes:
    """Add these fields to a ``session_meta`` line, and return any other line unchanged."""
    if b'"session_meta"' not in line[:120]:
        return line
    record: dict[str, Any] = json.loads(line)
    if record.get("type") == "session_meta":
        record["payload"] |= fields
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
