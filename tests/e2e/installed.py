"""Install the plugin from a clone, with the command lines from the README and the guide."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.needs import REPO, require_for_test


def clone_repository(folder: Path) -> Path:
    """Clone this repository with its uncommitted changes, and return the clone's folder."""
    require_for_test(
        "git", shutil.which("git") and (REPO / ".git").exists(), "run the tests in a git checkout"
    )
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", REPO, folder], check=True, timeout=120)
    changed = subprocess.run(
        ["git", "diff", "--binary", "HEAD"], cwd=REPO, capture_output=True, check=True
    ).stdout
    if changed:
        subprocess.run(["git", "apply"], cwd=folder, input=changed, check=True)
    return folder


def code_block_of_page(page: str, first_words: str) -> str:
    """Return the code block that begins with ``first_words``. The page has only one such block."""
    blocks = re.findall(
        r"^```\n(.*?)^```$", (REPO / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (found,) = (block for block in blocks if block.startswith(first_words))
    return str(found)


def run_shell_lines_in_clone(
    shell_lines: str,
    clone: Path,
    replaced_program: str,
    command: tuple[str, ...],
    env: Mapping[str, str],
) -> None:
    """Run shell lines in the clone's folder. In them, ``replaced_program`` runs ``command``.

    Raises AssertionError with the output if a line fails.
    """
    tools = clone.with_name(f"{clone.name}-path")
    tools.mkdir()
    words = " ".join(f"'{word}'" for word in command)
    (tools / replaced_program).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    (tools / replaced_program).chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", shell_lines], cwd=clone, env={**env, "PATH": f"{tools}:{env['PATH']}"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
