"""Requirements of tests: without one, a test is skipped by name, or fails if it is required."""

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
    """Return if ``present`` is true, else skip the test.

    The message names the requirement. With REQUIRE_ALL=1, which CI sets, the test fails
    instead.
    """
    if present:
        return
    message = f"{what} is missing: {how}"
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """Return the values as parameters: every ``step``-th runs always, the others with RUN_ALL=1."""
    return [
        value if not at % step else pytest.param(value, marks=pytest.mark.wide)
        for at, value in enumerate(values)
    ]


def every_python() -> list[Path]:
    """Return the Pythons that pyenv has for this user, sorted.

    It does not use HOME, which is a missing folder in the tests.
    """
    home = pwd.getpwuid(os.getuid()).pw_dir
    return sorted(Path(home, ".pyenv", "versions").glob("3.*/bin/python3"))


def python39() -> str:
    """Return a Python 3.9, the oldest for scripts of hooks; skip or fail the test without it."""
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
    """Return every conversation file of the corpus, sorted; empty without a corpus.

    Sub-agent files, empty files and files in a session's own folder are omitted.
    """
    files = sorted(corpus_folder().rglob("*.jsonl"))
    return [file for file in files if _is_conversation(file)]


def _is_conversation(file: Path) -> bool:
    """Check whether a .jsonl file is a session. Its companions are in a folder named after a session."""
    if file.name.startswith("agent-") or file.stat().st_size == 0:
        return False
    inside = file.relative_to(corpus_folder()).parts[:-1]
    return not any(re.fullmatch(UUID, part) for part in inside)


def rows_of_installed_parts(
    names: dict[str, Value], rows_of_parts: Mapping[str, Sequence[Any]]
) -> dict[str, Value]:
    """Return the expected values of the core's names and of the names that installed parts add.

    ``rows_of_parts`` maps each name of a part to a row that begins with the part.
    """
    return {
        name: value
        for name, value in names.items()
        if name not in rows_of_parts or seam.is_installed(rows_of_parts[name][0])
    }
