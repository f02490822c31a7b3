"""Owns the rule for what a test needs from outside: absent means skipped by name, or failed if required."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from resume_hooks import seam
from tests.builders import UUID

Value = TypeVar("Value")

REPO = Path(__file__).resolve().parent.parent


def need(what: str, present: object, how: str) -> None:
    """Return when `present` is true; else skip the test naming `what` and `how` to get it.

    Under REQUIRE_ALL=1 (what the CI sets) the same absence fails, so that nothing goes untested
    unseen.
    """
    if present:
        return
    message = f"{what} is missing: {how}"
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """The values as parameters of a test: every ``step``-th in every run, the others with RUN_ALL=1 alone."""
    return [
        value if not at % step else pytest.param(value, marks=pytest.mark.wide)
        for at, value in enumerate(values)
    ]


def every_python() -> list[Path]:
    """The Pythons that pyenv keeps for this user, sorted; HOME leads nowhere in the tests."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    return sorted(Path(home, ".pyenv", "versions").glob("3.*/bin/python3"))


def python39() -> str:
    """A Python 3.9, the oldest that the hooks' own scripts run on.

    Skips or fails the test where there is none.
    """
    known = (str(path) for path in every_python() if path.parent.parent.name.startswith("3.9."))
    found = next(known, "") or shutil.which("python3.9")
    need("Python 3.9", found, "install it with pyenv, or as python3.9 on PATH")
    return str(found)


def corpus_folder() -> Path:
    """Return the folder for real transcripts; it may not exist."""
    return Path(os.environ.get("RESUME_HOOKS_CORPUS") or REPO.parent / "shared" / "corpus")


def corpus() -> Path:
    """Return the folder of real transcripts; skip or fail the test without it."""
    folder = corpus_folder()
    need(
        "the transcript corpus", folder.is_dir(), f"set RESUME_HOOKS_CORPUS, or put it at {folder}"
    )
    return folder


def corpus_sessions() -> list[Path]:
    """Every conversation file of the corpus, sorted.

    Empty where there is no corpus (usable to parametrise).

    Left out: sub-agent files, the client's 0-byte stubs, and whatever is in a session's own
    folder.
    """
    files = sorted(corpus_folder().rglob("*.jsonl"))
    return [file for file in files if _is_conversation(file)]


def _is_conversation(file: Path) -> bool:
    """Whether a .jsonl is a session of its own.

    Companions are under a folder named like a session.
    """
    if file.name.startswith("agent-") or file.stat().st_size == 0:
        return False
    inside = file.relative_to(corpus_folder()).parts[:-1]
    return not any(re.fullmatch(UUID, part) for part in inside)


def here(names: dict[str, Value], brought: Mapping[str, Sequence[Any]]) -> dict[str, Value]:
    """Return the pinned rows of the core and of installed parts: ``brought`` has a row per name."""
    return {
        name: value
        for name, value in names.items()
        if name not in brought or seam.is_installed(brought[name][0])
    }
