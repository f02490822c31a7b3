"""Owns a client's temporary home.

The client gets nothing from the real home, configuration or environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from resume_hooks.paths import Where
from tests.e2e.harness.processes import end_processes_with_setting

API_KEY = "sk-ant-test-0000"
_SESSION_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_KEY_LIMIT = 200
_MODE = 0o600


class ClientHome:
    """A temporary HOME with its CLAUDE_CONFIG_DIR and one trusted project folder.

    `root` contains everything, `config` is the config folder, `cwd` the project, `tmp` the
    TMPDIR.
    """

    def __init__(self, root: Path, project: str = "project") -> None:
        """Make the folders under `root`.

        A seeded `.claude.json` keeps dialogs away from the prompt.
        """
        self.root = root.resolve()
        self.config = self.root / ".claude"
        self.cwd = self.root / project
        self.tmp = self.root / "tmp"
        for folder in (self.config, self.cwd, self.tmp):
            folder.mkdir(parents=True)
        self._seed()

    def _seed(self) -> None:
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(self.cwd): {"hasTrustDialogAccepted": True}},
        }
        (self.config / ".claude.json").write_text(json.dumps(state), encoding="utf-8")

    @property
    def project_folder(self) -> Path:
        """Where the client keeps the project's sessions.

        Made by the client or by `install_session`.

        Raises ValueError over 200 characters, where the client's key is no longer the plain one.
        """
        key = re.sub(r"[^A-Za-z0-9]", "-", str(self.cwd))
        if len(key) > _KEY_LIMIT:
            msg = f"the project path is too long for a plain key: {self.cwd}"
            raise ValueError(msg)
        return self.config / "projects" / key

    @property
    def where(self) -> Where:
        """The paths of the client's files for our functions."""
        return Where(self.env())

    def sessions(self) -> list[Path]:
        """Return the project's session files (`<uuid>.jsonl`, not empty), oldest change first."""
        named = (
            path
            for path in self.project_folder.glob("*.jsonl")
            if _SESSION_NAME.fullmatch(path.name)
        )
        return sorted(
            (path for path in named if path.stat().st_size),
            key=lambda path: path.stat().st_mtime_ns,
        )

    def install_session(
        self, source: Path | bytes, session_id: str, *, set_cwd: bool = False
    ) -> Path:
        """Lay a transcript in the project folder as `<session_id>.jsonl` and return its path.

        The bytes are kept as they are; with `set_cwd` every record that has a `cwd` is given this
        project's, which is what lets pickers and `--continue` list the session. A session's own
        folder comes along.
        """
        content = source if isinstance(source, bytes) else source.read_bytes()
        target = self.project_folder / f"{session_id}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._with_cwd(content) if set_cwd else content)
        target.chmod(_MODE)
        if isinstance(source, Path) and source.with_suffix("").is_dir():
            shutil.copytree(
                source.with_suffix(""), target.with_suffix(""), copy_function=shutil.copyfile
            )
        return target

    def _with_cwd(self, content: bytes) -> bytes:
        return b"\n".join(self._line_with_cwd(line) for line in content.split(b"\n"))

    def _line_with_cwd(self, line: bytes) -> bytes:
        try:
            record = json.loads(line)
        except ValueError:
            return line
        if not isinstance(record, dict) or "cwd" not in record:
            return line
        record["cwd"] = str(self.cwd)
        return json.dumps(record, separators=(",", ":")).encode()

    def write_settings(self, settings: Mapping[str, object]) -> None:
        """Make `settings` the user's settings.json."""
        (self.config / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the whole environment of a client: only PATH and `extra` come from outside.

        An inherited CLAUDE_CODE_CHILD_SESSION, for example, would hide the session from
        --resume.
        """
        base = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.root),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "TMPDIR": str(self.tmp),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            # A suggestion is drawn in the input box, where a test looks for what was typed.
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_INSTALLATION_CHECKS": "1",
            "IS_SANDBOX": "1",
            # In a client that ends within seconds, to optimize code and to collect garbage is a
            # third of its time.
            "BUN_JSC_useDFGJIT": "0",
            "BUN_JSC_useGC": "0",
        }
        return base | dict(extra or {})

    def end_processes(self) -> None:
        """End every process that still runs with this home: clients, detached hooks, clipboard owners."""
        end_processes_with_setting(f"HOME={self.root}")
