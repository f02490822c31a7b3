"""Tests of triggers while the state folder is full, read-only, missing or a link.

Triggers still answer, and they report what could not be stored.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import context_notice, prompt, session
from resume_hooks.paths import Where, session_id_from_path
from resume_hooks.sessions.link_log import read_links
from tests.builders import CWD, SESSION, ConfigHome
from tests.fuzz.targets.hooks import run_hook_main
from tests.test_clock_jumps import session_in_client

__all__ = ["session_in_client"]

TRIGGERS = (
    ">session", ">help", ">lineage", ">resume", ">search prompt", ">trim",
    ">trim yes", ">handoff go on",
)  # fmt: skip
HOOK_EVENTS: tuple[dict[str, str], ...] = (
    {"hook_event_name": "SessionEnd", "reason": "clear"},
    {"hook_event_name": "SessionStart", "source": "clear"},
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "SessionStart", "source": "resume"},
    {"hook_event_name": "SessionStart", "source": "compact"},
    {"hook_event_name": "Stop"},
)
WRITE_FLAGS = os.O_CREAT | os.O_WRONLY | os.O_RDWR

FolderFailure = Callable[[Path], contextlib.AbstractContextManager[None]]


def failing_writes(error_number: int) -> FolderFailure:
    """Return a context manager that makes writes to the state folder fail with this error number."""

    @contextlib.contextmanager
    def fail_writes(state: Path) -> Iterator[None]:
        state.mkdir(mode=0o700, exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            _patch_writes(patch, state, lambda: OSError(error_number, os.strerror(error_number)))
            yield

    return fail_writes


@contextlib.contextmanager
def keep_removing_folder(state: Path) -> Iterator[None]:
    """Remove the whole state folder whenever a file is about to be created in it."""

    def remove_folder() -> None:
        shutil.rmtree(state, ignore_errors=True)

    with pytest.MonkeyPatch.context() as patch:
        _patch_writes(patch, state, remove_folder)
        yield


def _patch_writes(
    patch: pytest.MonkeyPatch, state: Path, before_write: Callable[[], OSError | None]
) -> None:
    real_open, real_mkdir = os.open, os.mkdir

    def open_or_fail(path: Any, flags: int, *rest: Any, **keywords: Any) -> int:
        if str(path).startswith(str(state)) and flags & WRITE_FLAGS and (error := before_write()):
            raise error
        return real_open(path, flags, *rest, **keywords)

    def mkdir_or_fail(path: Any, *rest: Any, **keywords: Any) -> None:
        if str(path).startswith(f"{state}/") and (error := before_write()):
            raise error
        real_mkdir(path, *rest, **keywords)

    patch.setattr(os, "open", open_or_fail)
    patch.setattr(os, "mkdir", mkdir_or_fail)


@contextlib.contextmanager
def put_file_in_place_of_folder(state: Path) -> Iterator[None]:
    """Create a file where the state folder should be."""
    state.write_text("in the way")
    yield
    assert state.read_text() == "in the way"


@contextlib.contextmanager
def put_link_in_place_of_folder(state: Path) -> Iterator[None]:
    """Create a link to another folder where the state folder should be."""
    there = state.parent / "elsewhere"
    there.mkdir()
    state.symlink_to(there)
    yield
    assert not list(there.iterdir())


@contextlib.contextmanager
def set_impossible_state_folder(_: Path) -> Iterator[None]:
    """Set RESUME_HOOKS_HOME to a folder that cannot exist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESUME_HOOKS_HOME", "/dev/null/state")
        yield


FAILURES_BY_NAME: dict[str, FolderFailure] = {
    "full": failing_writes(errno.ENOSPC),
    "over quota": failing_writes(errno.EDQUOT),
    "read-only": failing_writes(errno.EROFS),
    "broken disk": failing_writes(errno.EIO),
    "not allowed": failing_writes(errno.EACCES),
    "vanishing": keep_removing_folder,
    "a file": put_file_in_place_of_folder,
    "a link": put_link_in_place_of_folder,
    "nowhere": set_impossible_state_folder,
}


def prompt_answer(session_in_client: str, text: str) -> str:
    """Return the answer to a prompt, or "" if the hook does not answer it."""
    event = {
        "session_id": SESSION,
        "transcript_path": session_in_client,
        "cwd": CWD,
        "prompt": text,
    }
    out = run_hook_main(prompt.main, json.dumps(event).encode())
    return str(json.loads(out)["reason"]) if out else ""


@pytest.mark.parametrize("name", FAILURES_BY_NAME)
def test_every_trigger_answers_without_a_state_folder(
    config_home: ConfigHome, session_in_client: str, name: str
) -> None:
    """Every trigger answers even if the state folder cannot be used, and other prompts still pass.

    A handoff writes its child, and the answer says that the link was not recorded.
    """
    before = Path(session_in_client).read_bytes()
    with FAILURES_BY_NAME[name](config_home.config / "resume-hooks"):
        assert prompt_answer(session_in_client, "fix it") == ""
        answers = {text: prompt_answer(session_in_client, text) for text in TRIGGERS}
        for event in HOOK_EVENTS:
            sent = json.dumps(
                {"session_id": SESSION, "transcript_path": session_in_client, "cwd": CWD, **event}
            ).encode()
            for main in (session.main, context_notice.main):
                out = run_hook_main(main, sent)
                assert out == b"" or isinstance(json.loads(out), dict)
    for text, answer in answers.items():
        assert answer, text
        assert "resume-hooks failed" not in answer, answer
        assert "Traceback" not in answer
    assert Path(session_in_client).read_bytes() == before
    children = [
        file
        for file in config_home.project().glob("*.jsonl")
        if session_id_from_path(str(file)) != SESSION
    ]
    assert len(children) == 1
    handoff = answers[">handoff go on"]
    assert children[0].stem in handoff
    if name != "vanishing":  # If the folder is removed again and again, some writes succeed.
        assert "link to the parent was not added" in handoff
        assert "temporary index" in answers[">search prompt"]


def test_a_state_folder_may_be_on_another_file_system(
    config_home: ConfigHome, session_in_client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state folder may be on another file system. The config home then contains no state."""
    own = config_home.config.stat().st_dev
    others = [
        place
        for place in (Path("/dev/shm"), Path(tempfile.gettempdir()))
        if place.is_dir() and place.stat().st_dev != own
    ]
    state = (others or [config_home.root])[0] / f"resume-hooks-test-{os.getpid()}"
    monkeypatch.setenv("RESUME_HOOKS_HOME", f"{state}/")
    try:
        for text in TRIGGERS:
            answer = prompt_answer(session_in_client, text)
            assert "resume-hooks failed" not in answer
            assert "note: The link" not in answer
        assert len(read_links(Where())) >= 1
        assert not (config_home.config / "resume-hooks").exists()
    finally:
        shutil.rmtree(state, ignore_errors=True)
