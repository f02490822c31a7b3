"""Find the real clients: old versions in a folder, and the newest one in a Python package.

PATH is never searched.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.needs import REPO, require_for_test

OLDEST_VERSION = "2.1.112"
"""The oldest supported client. It runs on node. It does not support modules, so it has no
``/handoff``."""

PREVIOUS_VERSION = "2.1.329"
"""A recent client that supports modules. Some tests compare the plugin's records with this
client's."""

NEWEST_VERSION = "2.1.332"
"""The client in the wheel of ``claude-agent-sdk``. pyproject.toml pins the version of this package.
"""

VERSIONS = (OLDEST_VERSION, PREVIOUS_VERSION, NEWEST_VERSION)
RECENT_VERSIONS = frozenset({PREVIOUS_VERSION, NEWEST_VERSION})
"""Versions with abilities that older versions lack. For example, they print why a hook blocked a
``-p`` prompt."""


@dataclass(frozen=True)
class ClientVersion:
    """One installed client: its version, and the command that starts it."""

    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        """Return the version, which pytest shows in the test's id."""
        return self.version


def clients_folder() -> Path:
    """Return the folder with the old clients, each in ``<version>/node_modules``.

    The variable RESUME_HOOKS_CLIENTS names the folder. Its default is ``.clients`` in the
    repository.
    """
    return Path(os.environ.get("RESUME_HOOKS_CLIENTS") or REPO / ".clients")


def find_client(version: str) -> ClientVersion:
    """Return the client with this version.

    If the client or the node that runs it is missing, the test is skipped. With REQUIRE_ALL=1 the
    test fails instead.
    """
    if version == NEWEST_VERSION:
        found = bundled_client()
        require_for_test(
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
    require_for_test(f"Claude Code {version}", script.is_file(), "sh tools/clients (it needs npm)")
    node = shutil.which("node")
    require_for_test(
        "node", node is not None, f"install Node.js: client {version} is a node script"
    )
    return ClientVersion(version, (str(node), str(script)))


def bundled_client() -> Path | None:
    """Return the client in the SDK's package, or None if the package contains none for this platform."""
    spec = find_spec("claude_agent_sdk")
    path = Path(spec.origin or "").parent / "_bundled" / "claude" if spec else Path()
    return path if path.is_file() else None
