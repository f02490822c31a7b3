"""Owns where the real client is found: pinned versions in one folder, never whatever is on PATH."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.needs import REPO, need

OLDEST, MIDDLE, NEWEST = "2.1.42", "2.1.112", "2.1.329"
VERSIONS = (OLDEST, MIDDLE, NEWEST)


@dataclass(frozen=True)
class ClientVersion:
    """One installed client: its version and the start of its command line."""

    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        """The version, as pytest shows it in a test's id."""
        return self.version


def clients_folder() -> Path:
    """`<folder>/<version>/node_modules/...`, from RESUME_HOOKS_CLIENTS or `.clients` in the repository."""
    return Path(os.environ.get("RESUME_HOOKS_CLIENTS") or REPO / ".clients")


def find_client(version: str) -> ClientVersion:
    """The client of that version; skips or fails the test where it, or the node it needs, is missing."""
    modules = clients_folder() / version / "node_modules" / "@anthropic-ai"
    binary = next((path for path in sorted(modules.glob("claude-code-*/claude")) if path.is_file()), None)
    if binary is not None:
        return ClientVersion(version, (str(binary),))
    script = modules / "claude-code" / "cli.js"
    how = f"npm install --prefix {clients_folder() / version} @anthropic-ai/claude-code@{version}"
    need(f"Claude Code {version}", script.is_file(), how)
    node = shutil.which("node")
    need("node", node is not None, f"install Node.js: client {version} is a node script")
    return ClientVersion(version, (str(node), str(script)))
