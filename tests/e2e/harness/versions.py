"""Owns the location of the real client: pinned old versions in a folder, the newest in a package.

It never uses PATH.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.needs import REPO, need

OLDEST = "2.1.112"
"""The oldest that is supported: a script for node, without modules, so without a command like ``/handoff``."""

PREVIOUS = "2.1.329"
"""A recent one with modules, which wrote the chains, calls and titles that tests have as measured."""

NEWEST = "2.1.332"
"""The client that the wheel of ``claude-agent-sdk``, which pyproject.toml pins, brings along."""

VERSIONS = (OLDEST, PREVIOUS, NEWEST)
RECENT = frozenset({PREVIOUS, NEWEST})
"""The versions that do what no older one does, such as printing why a hook blocked a prompt of ``-p``."""


@dataclass(frozen=True)
class ClientVersion:
    """One installed client: its version and the start of its command line."""

    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        """The version, as pytest shows it in a test's id."""
        return self.version


def clients_folder() -> Path:
    """Return the folder that contains ``<version>/node_modules/...`` of each pinned client.

    It is RESUME_HOOKS_CLIENTS, or ``.clients`` in the repository.
    """
    return Path(os.environ.get("RESUME_HOOKS_CLIENTS") or REPO / ".clients")


def find_client(version: str) -> ClientVersion:
    """Return the client of that version.

    Skips or fails the test if the client or its node is missing.
    """
    if version == NEWEST:
        found = bundled_client()
        need(
            f"Claude Code {version}",
            found,
            "sh tools/setup (it comes with the package claude-agent-sdk)",
        )
        return ClientVersion(version, (str(found),))
    modules = clients_folder() / version / "node_modules" / "@anthropic-ai"
    binary = next(
        (path for path in sorted(modules.glob("claude-code-*/claude")) if path.is_file()), None
    )
    if binary is not None:
        return ClientVersion(version, (str(binary),))
    script = modules / "claude-code" / "cli.js"
    need(f"Claude Code {version}", script.is_file(), "sh tools/clients (it needs npm)")
    node = shutil.which("node")
    need("node", node is not None, f"install Node.js: client {version} is a node script")
    return ClientVersion(version, (str(node), str(script)))


def bundled_client() -> Path | None:
    """Return the client in the SDK's wheel, or None if the wheel of this platform has none."""
    spec = find_spec("claude_agent_sdk")
    path = Path(spec.origin or "").parent / "_bundled" / "claude" if spec else Path()
    return path if path.is_file() else None
