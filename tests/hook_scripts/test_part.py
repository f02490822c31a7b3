"""Tests of the parts of a long opening.

The commands in hooks.json run in parallel, as in the client.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import start_parts
from resume_hooks.hooks.pending_handoff import MAX_OPENING_CHARACTERS, PendingHandoff, store_handoff
from resume_hooks.storage import state_file
from resume_hooks.system.text import utf16_length
from resume_hooks.transcripts import parted_text
from resume_hooks.transcripts.parted_text import join_parts, split_into_parts
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.hook_scripts.test_guard import installed_shells
from tests.needs import REPO

OLD_ID, CHILD_ID, NEW_ID = session_id(1), session_id(2), session_id(3)
START_HOOKS = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"][
    "SessionStart"
]
FIRST_HOOK_COMMAND = START_HOOKS[0]["hooks"][0]["command"]
OTHER_HOOK_COMMANDS = [hook["command"] for hook in START_HOOKS[1]["hooks"]]
SHELL_COMMAND = ("/bin/sh",)

OPENING = "\n".join(
    [
        "[SESSION LINEAGE]",
        "[/SESSION LINEAGE]",
        "",
        *(f"line {n:04} «{'word ' * 9}»\\" for n in range(600)),
    ]
)
"""A handoff's opening of about 36,000 characters."""

RunningHook = subprocess.Popen[bytes]


@pytest.fixture
def hook_environment(config_home: ConfigHome, tmp_path: Path) -> dict[str, str]:
    """Return the environment in which a client runs the plugin's hooks."""
    given = {
        "PATH": os.environ["PATH"],
        "CLAUDE_PLUGIN_ROOT": str(REPO),
        "CLAUDE_PLUGIN_DATA": str(tmp_path / "data"),
    }
    return {
        **given,
        **config_home.environ,
        "RESUME_HOOKS_PYTHON": sys.executable,
        "CLAUDE_PID": "4711",
    }


@pytest.fixture
def running_hooks() -> Iterator[list[RunningHook]]:
    """Return a list for the hooks that a test starts. After the test, end those that are still running."""
    hooks: list[RunningHook] = []
    yield hooks
    for hook in hooks:
        if hook.poll() is None:
            os.killpg(hook.pid, signal.SIGKILL)
        hook.communicate()


def start_hooks(
    hooks: list[RunningHook],
    commands: Sequence[str],
    env: dict[str, str],
    event: dict[str, Any],
    shell: Sequence[str] = SHELL_COMMAND,
) -> list[RunningHook]:
    """Start commands from hooks.json for an event, each in a separate process group."""
    begun = []
    for command in commands:
        hook = subprocess.Popen(
            [*shell, "-c", command],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        begun.append(hook)
        hooks.append(hook)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event).encode() + b"\n")
        hook.stdin.close()
        hook.stdin = None
    return begun


def added_texts(hooks: Sequence[RunningHook]) -> list[str]:
    """Return the text that each hook adds to the model's context, in the order of ``hooks``."""
    found = []
    for hook in hooks:
        out, err = hook.communicate(timeout=60)
        assert (hook.returncode, err) == (0, b"")
        found.append(json.loads(out)["hookSpecificOutput"]["additionalContext"] if out else "")
    return found


def make_start_event(
    source: str, started_id: str = NEW_ID, folder: Path | None = None
) -> dict[str, Any]:
    """Return the event of a session's start."""
    path = str(folder / f"{started_id}.jsonl") if folder else ""
    return {
        "session_id": started_id,
        "transcript_path": path,
        "hook_event_name": "SessionStart",
        "source": source,
    }


def write_pending_handoff(
    home: ConfigHome, pid: int = 4711, child_number: int = 2, opening: str = OPENING
) -> Path:
    """Write a handoff that waits for the client's ``/clear``, and return the project's folder."""
    child = session_id(child_number)
    path = write_session(home.project(), child, conversation(1, session_id=child))
    store_handoff(
        PendingHandoff(pid, "", OLD_ID, child, path, os.path.getsize(path), time.time(), opening)
    )
    return Path(path).parent


def names_of_unprinted_parts(home: ConfigHome) -> list[str]:
    """Return the names of the notes with parts that no hook has printed yet."""
    found = sorted((home.config / "resume-hooks" / "pending").glob("parts-*"))
    return [path.name for path in found if json.loads(path.read_text()) != {"version": 1}]


def test_there_is_a_hook_for_each_part() -> None:
    """There is one hook for each part of an opening. These hooks run only after /clear and a compaction."""
    assert len(OTHER_HOOK_COMMANDS) + 1 == parted_text.MAX_PARTS
    assert f"others={len(OTHER_HOOK_COMMANDS)};" in FIRST_HOOK_COMMAND
    assert [
        f"part={number};" in command for number, command in enumerate(OTHER_HOOK_COMMANDS, 1)
    ] == [True] * len(OTHER_HOOK_COMMANDS)
    assert [group.get("matcher") for group in START_HOOKS] == [None, "clear|compact"]
    assert MAX_OPENING_CHARACTERS + 300 <= parted_text.MAX_TEXT_UTF16_UNITS, (
        "our own words before an opening have room"
    )


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_a_long_handoff_is_complete(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    shell: list[str],
) -> None:
    """The hooks print all parts of a long handoff, each within the limit for a hook, and leave no note."""
    folder = write_pending_handoff(config_home)
    hooks = start_hooks(
        running_hooks,
        [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
        hook_environment,
        make_start_event("clear", NEW_ID, folder),
        shell,
    )
    given = added_texts(hooks)
    assert max(map(utf16_length, given)) < 10_000
    (text,) = join_parts(given)
    assert text.partition("\n\n")[2] == OPENING
    assert join_parts([*given[1:], given[0]]) == [text]
    assert "".join(given[1:])[: len("This session")] == "This session", "in their order"
    assert names_of_unprinted_parts(config_home) == []


def test_only_the_first_hook_prints_a_short_handoff(
    config_home: ConfigHome, hook_environment: dict[str, str], running_hooks: list[RunningHook]
) -> None:
    """The first hook alone prints a short handoff, without part numbers.

    If there is no handoff, no hook prints text.
    """
    folder = write_pending_handoff(
        config_home, opening="[SESSION LINEAGE]\n[/SESSION LINEAGE]\n\ngo on"
    )
    first, *others = added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
            hook_environment,
            make_start_event("clear", NEW_ID, folder),
        )
    )
    assert first.endswith("\n\ngo on")
    assert "art 1 of" not in first
    assert others == ["", "", ""]
    for source in ("clear", "compact"):
        assert (
            added_texts(
                start_hooks(
                    running_hooks,
                    [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
                    hook_environment,
                    make_start_event(source, NEW_ID, folder),
                )
            )
            == [""] * 4
        )
    assert names_of_unprinted_parts(config_home) == []


@pytest.mark.parametrize("source", ["startup", "resume", "fork", "", "clear"])
def test_no_parts_are_printed_if_no_handoff_follows_clear(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    source: str,
) -> None:
    """If a session starts without ``/clear``, the hooks for the parts print no text and write no notes.

    The same is true after ``/clear`` if there is no handoff.
    """
    if source != "clear":
        write_pending_handoff(config_home)
    assert (
        added_texts(
            start_hooks(
                running_hooks, OTHER_HOOK_COMMANDS, hook_environment, make_start_event(source)
            )
        )
        == [""] * 3
    )
    assert names_of_unprinted_parts(config_home) == []


def test_a_late_hook_prints_nothing(
    config_home: ConfigHome, hook_environment: dict[str, str], running_hooks: list[RunningHook]
) -> None:
    """If a hook for a part starts after the first hook has ended, it prints nothing.

    A later start removes the late hook's note.
    """
    folder = write_pending_handoff(config_home)
    added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND],
            hook_environment,
            make_start_event("clear", NEW_ID, folder),
        )
    )
    (note,) = (config_home.config / "resume-hooks" / "pending").glob("parts-*")
    write_pending_handoff(config_home)
    assert (
        added_texts(
            start_hooks(
                running_hooks,
                OTHER_HOOK_COMMANDS,
                hook_environment,
                make_start_event("clear", NEW_ID, folder),
            )
        )
        == [""] * 3
    )
    os.utime(note, (1, 1))
    added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND],
            hook_environment,
            make_start_event("clear", session_id(5)),
        )
    )
    assert not note.exists()


def test_two_parallel_clients_get_their_own_handoffs(
    config_home: ConfigHome, hook_environment: dict[str, str], running_hooks: list[RunningHook]
) -> None:
    """If two clients start sessions at the same time, each gets its own complete handoff."""
    mine, theirs = OPENING.replace("word", "mine"), OPENING.replace("word", "them")
    write_pending_handoff(config_home, 4711, 2, mine)
    folder = write_pending_handoff(config_home, 4712, 12, theirs)
    one = start_hooks(
        running_hooks,
        [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
        hook_environment,
        make_start_event("clear", NEW_ID, folder),
    )
    other = start_hooks(
        running_hooks,
        [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
        {**hook_environment, "CLAUDE_PID": "4712"},
        make_start_event("clear", session_id(13), folder),
    )
    for hooks, opening in ((one, mine), (other, theirs)):
        (text,) = join_parts(added_texts(hooks))
        assert text.partition("\n\n")[2] == opening


def test_the_first_hook_prints_a_cut_text_if_no_other_hook_starts(
    config_home: ConfigHome, hook_environment: dict[str, str], running_hooks: list[RunningHook]
) -> None:
    """If the other hooks never start, the first hook prints the beginning and the end of the opening.

    If only one of the other hooks is missing, the last part reports the missing part.
    """
    folder = write_pending_handoff(config_home)
    (alone,) = added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND],
            hook_environment,
            make_start_event("clear", NEW_ID, folder),
        )
    )
    assert utf16_length(alone) < 10_000
    assert (
        alone.startswith("This session was started by /clear"),
        alone.endswith(OPENING[-2_000:]),
    ) == (True, True)
    assert start_parts.CUT_NOTICE in alone
    write_pending_handoff(config_home)
    last, *_ = added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND, OTHER_HOOK_COMMANDS[0], OTHER_HOOK_COMMANDS[2]],
            hook_environment,
            make_start_event("clear", session_id(4), folder),
        )
    )
    assert last.endswith("\n(Part 2 could not be delivered.)")
    assert names_of_unprinted_parts(config_home) == []


def test_codex_gets_one_text_that_ends_with_the_next_step(
    config_home: ConfigHome, hook_environment: dict[str, str], running_hooks: list[RunningHook]
) -> None:
    """Codex, which has no hooks for the parts, gets a shorter text that ends with the next step."""
    folder = write_pending_handoff(config_home, opening=f"{OPENING}\n\nNext step:\nfix it")
    codex = json.loads((REPO / "hooks" / "codex.json").read_text())["hooks"]["SessionStart"][0][
        "hooks"
    ][0]["command"]
    (given,) = added_texts(
        start_hooks(
            running_hooks, [codex], hook_environment, make_start_event("clear", NEW_ID, folder)
        )
    )
    assert len(given) <= start_parts.MAX_UNITS_WITHOUT_PARTS
    assert given.endswith("Next step:\nfix it")
    assert names_of_unprinted_parts(config_home) == []


@pytest.mark.parametrize("other_hooks_start", ["before", "after"])
def test_the_hooks_for_parts_print_nothing_without_the_first_hook(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    tmp_path: Path,
    other_hooks_start: str,
) -> None:
    """If the first hook is killed, the other hooks print nothing, and the next start prints no old parts."""
    engine = tmp_path / "engine that hangs"
    engine.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hangs'\nsleep 60\n")
    engine.chmod(0o755)
    hung = hook_environment | {"RESUME_HOOKS_PYTHON": str(engine)}
    (first,) = start_hooks(running_hooks, [FIRST_HOOK_COMMAND], hung, make_start_event("compact"))
    others = (
        start_hooks(
            running_hooks, OTHER_HOOK_COMMANDS, hook_environment, make_start_event("compact")
        )
        if other_hooks_start == "before"
        else []
    )
    end = time.monotonic() + 30
    while not (tmp_path / "hangs").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert all(hook.poll() is None for hook in others)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    pending = config_home.config / "resume-hooks" / "pending"
    claim = pending / f"parts-{NEW_ID}.json"
    if (
        other_hooks_start == "after"
    ):  # The first hook was about to end and had already written its parts.
        claim.write_text(json.dumps({**json.loads(claim.read_text()), "count": 3}))
        for number in (1, 2):
            (pending / f"parts-{NEW_ID}-{number}").write_text('{"stale": "part"}\n')
        others = start_hooks(
            running_hooks, OTHER_HOOK_COMMANDS, hook_environment, make_start_event("compact")
        )
    assert added_texts(others) == [""] * 3
    assert claim.exists()
    assert (
        added_texts(
            start_hooks(
                running_hooks,
                [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
                hook_environment,
                make_start_event("compact"),
            )
        )
        == [""] * 4
    )
    assert names_of_unprinted_parts(config_home) == []


@pytest.mark.parametrize(
    "note",
    ["", "x", "[]", '{"version": 1, "pid": "x"}', '{"version": 1, "pid": 99999999999999999}'],
)
def test_a_damaged_claim_is_ignored(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    note: str,
) -> None:
    """If the note of the first hook is damaged, the opening is still printed, and all hooks end."""
    folder = write_pending_handoff(config_home)
    (config_home.config / "resume-hooks" / "pending" / f"parts-{NEW_ID}.json").write_text(note)
    assert (
        added_texts(
            start_hooks(
                running_hooks, OTHER_HOOK_COMMANDS, hook_environment, make_start_event("compact")
            )
        )
        == [""] * 3
    )
    first, *_ = added_texts(
        start_hooks(
            running_hooks,
            [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
            hook_environment,
            make_start_event("clear", NEW_ID, folder),
        )
    )
    assert OPENING[-100:] in first


@pytest.mark.parametrize("link_place", ["", "pending", f"pending/parts-{NEW_ID}-1"])
def test_state_behind_a_link_is_ignored(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    link_place: str,
) -> None:
    """If the state folder or a file in it is a link, the hooks do not print what the link leads to."""
    state, elsewhere = config_home.config / "resume-hooks", config_home.root / "elsewhere"
    pending = (
        elsewhere / "pending" if link_place != f"pending/parts-{NEW_ID}-1" else state / "pending"
    )
    pending.mkdir(parents=True)
    (pending / f"parts-{NEW_ID}.json").write_text(
        json.dumps({"version": 1, "pid": os.getpid(), "count": 2})
    )
    if link_place.endswith("-1"):
        (config_home.root / "x").write_text('{"planted": 1}\n')
        (state / link_place).symlink_to(config_home.root / "x")
    else:
        (pending / f"parts-{NEW_ID}-1").write_text('{"planted": 1}\n')
        state.parent.mkdir(parents=True, exist_ok=True)
        (state / link_place).parent.mkdir(parents=True, exist_ok=True)
        (state / link_place if link_place else state).symlink_to(
            pending if link_place else elsewhere
        )
    hooks = start_hooks(
        running_hooks, OTHER_HOOK_COMMANDS[:1], hook_environment, make_start_event("compact")
    )
    assert hooks[0].communicate(timeout=60)[0] == b""


@pytest.mark.parametrize("invalid_id", ["../x", "", "x y", "*"])
def test_no_parts_are_printed_for_an_invalid_id(
    config_home: ConfigHome,
    hook_environment: dict[str, str],
    running_hooks: list[RunningHook],
    invalid_id: str,
) -> None:
    """If the session id is invalid, no hook prints text and no file is written."""
    assert (
        added_texts(
            start_hooks(
                running_hooks,
                [FIRST_HOOK_COMMAND, *OTHER_HOOK_COMMANDS],
                hook_environment,
                make_start_event("compact", invalid_id),
            )
        )
        == [""] * 4
    )
    assert not (config_home.config / "resume-hooks").exists()


def test_no_parts_are_printed_without_a_writable_state_folder(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the state folder cannot be written to, the first hook prints one shortened text."""

    def raise_full_disk(*_given: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    claim = folder / f"parts-{NEW_ID}.json"
    claim.write_text(json.dumps({"version": 1, "pid": os.getpid()}))
    claim.chmod(0o600)
    for key, value in config_home.environ.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(state_file, "create_file", raise_full_disk)
    said = json.loads(start_parts.deliver_start_text(OPENING, "", NEW_ID))["hookSpecificOutput"][
        "additionalContext"
    ]
    assert said == start_parts.remove_middle(OPENING, parted_text.MAX_UTF16_UNITS_PER_PART)
    assert len(split_into_parts(said)) == 1


def test_a_text_too_long_for_all_parts_loses_its_middle() -> None:
    """If a text is too long for all parts together, lines in its middle are left out.

    If the text is a single line, characters in its middle are left out.
    """
    for text in (OPENING * 3, "\U0001f680" * 50_000, "x" * 90_000):
        short = start_parts.remove_middle(text, parted_text.MAX_TEXT_UTF16_UNITS)
        assert (
            parted_text.MAX_TEXT_UTF16_UNITS - 300
            < utf16_length(short)
            <= parted_text.MAX_TEXT_UTF16_UNITS
        )
        begin_, _, end = short.partition(start_parts.CUT_NOTICE)
        assert (text.startswith(begin_), text.endswith(end)) == (True, True)
