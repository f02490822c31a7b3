"""Define what tests require. If something is missing, a test is skipped; with REQUIRE_ALL=1 it fails."""

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
from tests.builders import SESSION_ID_PATTERN

Value = TypeVar("Value")

REPO = Path(__file__).resolve().parent.parent


def require_for_test(requirement: str, is_present: object, advice: str) -> None:
    """Skip the test if ``requirement`` is not present.

    The message names the requirement and contains the advice on how to get it. With REQUIRE_ALL=1,
    which CI sets, the test fails instead.
    """
    if is_present:
        return
    message = f"{requirement} is missing: {advice}"
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """Return the values as test parameters. Without RUN_ALL=1, only every ``step``-th value is tested."""
    return [
        value if not at % step else pytest.param(value, marks=pytest.mark.wide)
        for at, value in enumerate(values)
    ]


def installed_pythons() -> list[Path]:
    """Return the sorted paths of all Pythons that pyenv has installed for this user.

    HOME is not used, because in the tests it is a folder that does not exist.
    """
    home = pwd.getpwuid(os.getuid()).pw_dir
    return sorted(Path(home, ".pyenv", "versions").glob("3.*/bin/python3"))


def python39_path() -> str:
    """Return the path of a Python 3.9. If there is none, the test is skipped or fails.

    Python 3.9 is the oldest version that can run the hooks' scripts.
    """
    known = (
        str(path) for path in installed_pythons() if path.parent.parent.name.startswith("3.9.")
    )
    found = next(known, "") or shutil.which("python3.9")
    require_for_test("Python 3.9", found, "install it with pyenv, or as python3.9 on PATH")
    return str(found)


def corpus_folder() -> Path:
    """Return the path of the folder of real transcripts. The folder may be missing."""
    return Path(os.environ.get("RESUME_HOOKS_CORPUS") or REPO.parent / "shared" / "corpus")


def corpus() -> Path:
    """Return the folder of real transcripts. If it is missing, the test is skipped or fails."""
    folder = corpus_folder()
    require_for_test(
        "the transcript corpus", folder.is_dir(), f"set RESUME_HOOKS_CORPUS, or put it at {folder}"
    )
    return folder


def corpus_sessions() -> list[Path]:
    """Return the sorted session files of the corpus, or an empty list if there is no corpus.

    Files of sub-agents, empty files and files in a session's own folder are left out.
    """
    files = sorted(corpus_folder().rglob("*.jsonl"))
    return [file for file in files if _is_conversation(file)]


def _is_conversation(file: Path) -> bool:
    """Check whether a .jsonl file is a session: it is not empty and not in another session's folder."""
    if file.name.startswith("agent-") or file.stat().st_size == 0:
        return False
    inside = file.relative_to(corpus_folder()).parts[:-1]
    return not any(re.fullmatch(SESSION_ID_PATTERN, part) for part in inside)


def keep_names_of_installed_parts(
    names: dict[str, Value], rows_of_parts: Mapping[str, Sequence[Any]]
) -> dict[str, Value]:
    """Return ``names`` without those that belong to a part that is not installed.

    ``rows_of_parts`` contains a row for each name that belongs to a part. The row begins with the
    name of this part.
    """
    return {
        name: value
        for name, value in names.items()
        if name not in rows_of_parts or seam.is_installed(rows_of_parts[name][0])
    }
