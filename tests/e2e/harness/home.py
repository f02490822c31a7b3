"""Create a client's temporary home.

The client uses nothing from the real home, configuration or environment.
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
_SESSION_FILE_NAME_PATTERN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_MAX_FOLDER_NAME_LENGTH = 200
_SESSION_FILE_MODE = 0o600


class ClientHome:
    """A temporary HOME with a CLAUDE_CONFIG_DIR and one trusted project folder.

    ``root`` is the HOME, which contains the other folders. ``config`` is the client's configuration
    folder, ``cwd`` is the project, and ``tmp`` is the TMPDIR.
    """

    def __init__(self, root: Path, project: str = "project") -> None:
        """Create the folders under ``root``, and write the client's ``.claude.json``."""
        self.root = root.resolve()
        self.config = self.root / ".claude"
        self.cwd = self.root / project
        self.tmp = self.root / "tmp"
        for folder in (self.config, self.cwd, self.tmp):
            folder.mkdir(parents=True)
        self.write_client_config()

    def write_client_config(self) -> None:
        """Write a ``.claude.json`` with which the client shows its prompt immediately, without setup dialogs."""
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(self.cwd): {"hasTrustDialogAccepted": True}},
        }
        (self.config / ".claude.json").write_text(json.dumps(state), encoding="utf-8")

    @property
    def project_folder(self) -> Path:
        """The folder in which the client keeps the project's sessions.

        The folder does not exist until the client or ``install_session`` creates it.

        Raises ValueError if its name has more than 200 characters, because the client shortens
        these names.
        """
        key = re.sub(r"[^A-Za-z0-9]", "-", str(self.cwd))
        if len(key) > _MAX_FOLDER_NAME_LENGTH:
            msg = f"the project path is too long for a plain key: {self.cwd}"
            raise ValueError(msg)
        return self.config / "projects" / key

    @property
    def where(self) -> Where:
        """The paths of the client's files, in the form that the engine's functions take."""
        return Where(self.env())

    def sessions(self) -> list[Path]:
        """Return the project's session files (``<uuid>.jsonl``, not empty), least recently changed first."""
        named = (
            path
            for path in self.project_folder.glob("*.jsonl")
            if _SESSION_FILE_NAME_PATTERN.fullmatch(path.name)
        )
        return sorted(
            (path for path in named if path.stat().st_size),
            key=lambda path: path.stat().st_mtime_ns,
        )

    def install_session(
        self, source: Path | bytes, session_id: str, *, set_cwd: bool = False
    ) -> Path:
        """Copy a transcript into the project folder as ``<session_id>.jsonl``, and return its path.

        With ``set_cwd``, every ``cwd`` in its records is replaced with this project's folder;
        otherwise the client's picker and ``--continue`` do not list the session. If the session has
        a separate folder, for example for sub-agents, this folder is copied too.
        """
        content = source if isinstance(source, bytes) else source.read_bytes()
        target = self.project_folder / f"{session_id}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._set_cwd(content) if set_cwd else content)
        target.chmod(_SESSION_FILE_MODE)
        if isinstance(source, Path) and source.with_suffix("").is_dir():
            shutil.copytree(
                source.with_suffix(""), target.with_suffix(""), copy_function=shutil.copyfile
            )
        return target

    def _set_cwd(self, content: bytes) -> bytes:
        return b"\n".join(self._set_cwd_in_line(line) for line in content.split(b"\n"))

    def _set_cwd_in_line(self, line: bytes) -> bytes:
        try:
            record = json.loads(line)
        except ValueError:
            return line
        if not isinstance(record, dict) or "cwd" not in record:
            return line
        record["cwd"] = str(self.cwd)
        return json.dumps(record, separators=(",", ":")).encode()

    def write_settings(self, settings: Mapping[str, object]) -> None:
        """Write ``settings`` as the user's settings.json."""
        (self.config / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the complete environment of a client; only PATH and ``extra`` come from outside.

        Other inherited variables could change the client's behaviour. For example,
        CLAUDE_CODE_CHILD_SESSION would hide the session from ``--resume``.
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
            # The tests read the text of the input box. Without this variable, the client would draw
            # a suggestion there.
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_INSTALLATION_CHECKS": "1",
            "IS_SANDBOX": "1",
            # Most clients run for only a few seconds. Code optimization and garbage collection
            # would take a third of this time.
            "BUN_JSC_useDFGJIT": "0",
            "BUN_JSC_useGC": "0",
        }
        return base | dict(extra or {})

    def end_processes(self) -> None:
        """End all processes that are still running with this home: clients, hooks, and clipboard owners."""
        end_processes_with_setting(f"HOME={self.root}")
