"""A state folder that is full, read-only, gone, elsewhere or none: what works continues, what is not saved is said."""

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
from tests.fuzz.targets.hooks import hook_output
from tests.test_clock_jumps import path

__all__ = ["path"]

TRIGGERS = (
    ">session", ">help", ">lineage", ">resume", ">search prompt", ">trim",
    ">trim yes", ">handoff go on",
)  # fmt: skip
EVENTS: tuple[dict[str, str], ...] = (
    {"hook_event_name": "SessionEnd", "reason": "clear"},
    {"hook_event_name": "SessionStart", "source": "clear"},
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "SessionStart", "source": "resume"},
    {"hook_event_name": "SessionStart", "source": "compact"},
    {"hook_event_name": "Stop"},
)
WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR

Trouble = Callable[[Path], contextlib.AbstractContextManager[None]]


def refusing(number: int) -> Trouble:
    """Nothing in the folder can be made or opened to be written, as the system says it by this number."""

    @contextlib.contextmanager
    def trouble(state: Path) -> Iterator[None]:
        state.mkdir(mode=0o700, exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            _refuse(patch, state, lambda: OSError(number, os.strerror(number)))
            yield

    return trouble


@contextlib.contextmanager
def vanishing(state: Path) -> Iterator[None]:
    """Somebody removes the whole folder each time that something is to be made in it."""

    def gone() -> None:
        shutil.rmtree(state, ignore_errors=True)

    with pytest.MonkeyPatch.context() as patch:
        _refuse(patch, state, gone)
        yield


def _refuse(patch: pytest.MonkeyPatch, state: Path, act: Callable[[], OSError | None]) -> None:
    real_open, real_mkdir = os.open, os.mkdir

    def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if str(path).startswith(str(state)) and flags & WRITING and (error := act()):
            raise error
        return real_open(path, flags, *rest, **named)

    def made(path: Any, *rest: Any, **named: Any) -> None:
        if str(path).startswith(f"{state}/") and (error := act()):
            raise error
        real_mkdir(path, *rest, **named)

    patch.setattr(os, "open", opened)
    patch.setattr(os, "mkdir", made)


@contextlib.contextmanager
def a_file(state: Path) -> Iterator[None]:
    """A file stands where the folder should."""
    state.write_text("in the way")
    yield
    assert state.read_text() == "in the way"


@contextlib.contextmanager
def a_link(state: Path) -> Iterator[None]:
    """A link does, to a folder of somebody's."""
    there = state.parent / "elsewhere"
    there.mkdir()
    state.symlink_to(there)
    yield
    assert not list(there.iterdir())


@contextlib.contextmanager
def nowhere(_: Path) -> Iterator[None]:
    """The folder is named where none can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESUME_HOOKS_HOME", "/dev/null/state")
        yield


TROUBLES: dict[str, Trouble] = {
    "full": refusing(errno.ENOSPC),
    "over quota": refusing(errno.EDQUOT),
    "read-only": refusing(errno.EROFS),
    "broken disk": refusing(errno.EIO),
    "not allowed": refusing(errno.EACCES),
    "vanishing": vanishing,
    "a file": a_file,
    "a link": a_link,
    "nowhere": nowhere,
}


def prompt_answer(path: str, text: str) -> str:
    """Return the answer to a prompt, ``""`` if it passes."""
    event = {"session_id": SESSION, "transcript_path": path, "cwd": CWD, "prompt": text}
    out = hook_output(prompt.main, json.dumps(event).encode())
    return str(json.loads(out)["reason"]) if out else ""


@pytest.mark.parametrize("name", TROUBLES)
def test_every_trigger_ends_in_a_sentence(config_home: ConfigHome, path: str, name: str) -> None:
    """A prompt that is not ours passes.

    A handoff is made whatever its link came to, and nothing is claimed.
    """
    before = Path(path).read_bytes()
    with TROUBLES[name](config_home.config / "resume-hooks"):
        assert prompt_answer(path, "fix it") == ""
        answers = {text: prompt_answer(path, text) for text in TRIGGERS}
        for event in EVENTS:
            sent = json.dumps(
                {"session_id": SESSION, "transcript_path": path, "cwd": CWD, **event}
            ).encode()
            for main in (session.main, context_notice.main):
                out = hook_output(main, sent)
                assert out == b"" or isinstance(json.loads(out), dict)
    for text, answer in answers.items():
        assert answer, text
        assert "resume-hooks failed" not in answer, answer
        assert "Traceback" not in answer
    assert Path(path).read_bytes() == before
    children = [
        file
        for file in config_home.project().glob("*.jsonl")
        if session_id_from_path(str(file)) != SESSION
    ]
    assert len(children) == 1
    handoff = answers[">handoff go on"]
    assert children[0].stem in handoff
    if name != "vanishing":  # there some writes succeed
        assert "link was not added" in handoff
        assert "temporary index" in answers[">search prompt"]


def test_a_state_folder_on_another_file_system(
    config_home: ConfigHome, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by RESUME_HOOKS_HOME: everything is kept there, nothing in the config home."""
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
            answer = prompt_answer(path, text)
            assert "resume-hooks failed" not in answer
            assert "note: The link" not in answer
        assert len(read_links(Where())) >= 1
        assert not (config_home.config / "resume-hooks").exists()
    finally:
        shutil.rmtree(state, ignore_errors=True)
