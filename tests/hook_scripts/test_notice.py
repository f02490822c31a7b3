"""Tests of the script that runs after each turn: its cost, its calls of Python, and hostile input."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive import link_sessions
from resume_hooks.paths import Where
from tests.builders import (
    SESSION,
    Record,
    assistant,
    conversation,
    session_bytes,
    tool_result,
    user,
)
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_guard import installed_shells
from tests.needs import require_for_test

INPUT_USAGE = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 1_000,
    "cache_read_input_tokens": 98_896,
}
"""A usage of 99,900 input tokens. With 100 output tokens, the total is 100,000."""


def answer_with_usage(usage: Record, **fields: Any) -> Record:
    """Return an assistant record with this usage."""
    return assistant("a", uuid="a", parent="u", tokens=usage, **fields)


def write_transcript(
    plugin: PluginCopy, records: Sequence[Record | bytes], folder: str = "-work"
) -> Path:
    """Write a transcript of these records to the config folder and return its path."""
    path = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "projects" / folder / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session_bytes(records))
    return path


def write_note(plugin: PluginCopy, token_count: object) -> Path:
    """Write a note with the token count at which Python is called next, and return its path."""
    note = (
        Path(plugin.env["CLAUDE_CONFIG_DIR"])
        / "resume-hooks"
        / "pending"
        / f"notice-{SESSION}.json"
    )
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"version": 1, "look": token_count, "told": 0}))
    return note


def make_stop_event(path: object, **fields: object) -> bytes:
    """Return the event for the end of a turn, with its keys in the client's order."""
    first = {
        "session_id": SESSION,
        "transcript_path": str(path),
        "cwd": "/",
        "hook_event_name": "Stop",
    }
    return json.dumps(
        {**first, "stop_hook_active": False, **fields}, separators=(",", ":"), ensure_ascii=False
    ).encode()


def stop_hook_calls_python(plugin: PluginCopy, body: bytes, *shell: str, **env: str) -> bool:
    """Return whether the Stop hook calls Python, and check that it passes Python the whole event."""
    plugin.delete_engine_calls()
    done = plugin.run_hook("Stop", body, *shell, **env)
    assert (done.returncode, done.stderr) == (0, b"")
    reached = plugin.engine_calls
    assert done.stdout == (b"reply of notice\n" if reached else b"")
    if reached:
        assert reached.split(b"\n", 1)[1] == body + b"\n"
    return bool(reached)


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_python_is_called_if_the_token_count_reaches_the_number_in_the_note(
    plugin: PluginCopy, shell: list[str]
) -> None:
    """Python is called if the last answer's token count is at least the number in the note.

    The token count is the sum of the answer's four counts. If there is no note, the number is
    60,000.
    """
    body = make_stop_event(
        write_transcript(
            plugin, [*conversation(2), answer_with_usage({**INPUT_USAGE, "output_tokens": 100})]
        )
    )
    assert stop_hook_calls_python(plugin, body, *shell)
    for look, reached in (
        (99_999, True),
        (100_000, True),
        (100_001, False),
        (10**9, False),
        (10**12, False),
    ):
        write_note(plugin, look)
        assert stop_hook_calls_python(plugin, body, *shell) is reached, look
    write_transcript(plugin, conversation(2))
    write_note(plugin, 1_301)
    assert not stop_hook_calls_python(plugin, body, *shell)
    write_note(plugin, 1_300)
    assert stop_hook_calls_python(plugin, body, *shell)
    write_note(plugin, 1).unlink()
    assert not stop_hook_calls_python(plugin, body, *shell)


RECORDS_BY_CASE: dict[str, Record | Sequence[Record | bytes]] = {
    "other order": {"output_tokens": 100, "server_tool_use": {"x": 1}, **INPUT_USAGE},
    "nested first": {
        "cache_creation": {"ephemeral_5m_input_tokens": 1_000},
        **INPUT_USAGE,
        "output_tokens": 100,
    },
    "iterations": {
        **INPUT_USAGE,
        "output_tokens": 100,
        "iterations": [{"input_tokens": 5, "output_tokens": 9}],
    },
    "a sub-agent after it": [
        answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
        answer_with_usage({"input_tokens": 900_000}, isSidechain=True),
        tool_result("c", uuid="r", parent="a", toolUseResult={"usage": {"input_tokens": 900_000}}),
    ],
    "said by a tool": [
        answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
        user('{"type":"assistant","usage":{"input_tokens":900000}}', uuid="v", parent="a"),
    ],
    "in a call": [
        assistant(
            [
                {
                    "type": "tool_use",
                    "id": "c",
                    "name": "X",
                    "input": {"usage": {"input_tokens": 900_000}},
                }
            ],
            uuid="a",
            parent="u",
            tokens={**INPUT_USAGE, "output_tokens": 100},
        )
    ],
    "a synthetic answer after it": [
        answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
        answer_with_usage({"input_tokens": 0, "output_tokens": 0}, model="<synthetic>"),
    ],
    "a torn line after it": [
        answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
        b'{"type":"assistant","message":{"usa',
    ],
    "bytes that are no text": [
        answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
        b"\xff\xfe\x00\x80",
        b"",
    ],
}


@pytest.mark.parametrize("name", RECORDS_BY_CASE)
def test_the_tokens_of_the_last_answer_are_compared(plugin: PluginCopy, name: str) -> None:
    """The script uses the token count of the last answer, in whatever order the answer's fields are.

    Similar numbers in other records make no difference.
    """
    records = RECORDS_BY_CASE[name]
    rows = [answer_with_usage(records)] if isinstance(records, dict) else records
    body = make_stop_event(write_transcript(plugin, [*conversation(1), *rows]))
    write_note(plugin, 100_000)
    assert stop_hook_calls_python(plugin, body)
    write_note(plugin, 100_001)
    assert not stop_hook_calls_python(plugin, body)


def test_an_answer_followed_by_a_megabyte_of_output_is_not_counted(plugin: PluginCopy) -> None:
    """If a megabyte of output follows the last answer, the script does not call Python after this turn."""
    body = make_stop_event(
        write_transcript(
            plugin,
            [
                answer_with_usage({**INPUT_USAGE, "output_tokens": 100}),
                user("x" * 1_000_000, uuid="v"),
            ],
        )
    )
    assert not stop_hook_calls_python(plugin, body)


def test_the_transcript_is_found_by_the_session_id(plugin: PluginCopy, tmp_path: Path) -> None:
    """If the path in the event is escaped or missing, the script finds the transcript by the session's id."""
    write_transcript(plugin, [answer_with_usage(INPUT_USAGE)], folder="-somewhere-else")
    for path in ('/a "quoted" place/x.jsonl', str(tmp_path / "gone.jsonl"), str(tmp_path)):
        assert stop_hook_calls_python(plugin, make_stop_event(path))
    shutil.rmtree(Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "projects")
    assert not stop_hook_calls_python(plugin, make_stop_event(tmp_path / "gone.jsonl"))


def test_newer_settings_make_the_script_call_python(plugin: PluginCopy) -> None:
    """If the settings changed after the note was written, the script calls Python.

    The new settings may contain a lower limit than the note.
    """
    body = make_stop_event(write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]))
    note = write_note(plugin, 10**9)
    settings = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "settings.json"
    settings.write_text("{}")
    os.utime(settings, (1, 1))
    assert not stop_hook_calls_python(plugin, body)
    os.utime(note, (0, 0))
    assert stop_hook_calls_python(plugin, body)


def test_headless_runs_do_not_start_python(plugin: PluginCopy) -> None:
    """In headless runs, the script does not call Python, because no user could react to Python's message."""
    body = make_stop_event(write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]))
    assert not stop_hook_calls_python(plugin, body, RESUME_HOOKS_CHILD="1")
    for entry, reached in (("sdk-cli", False), ("sdk-py", False), ("cli", True), ("", True)):
        assert stop_hook_calls_python(plugin, body, CLAUDE_CODE_ENTRYPOINT=entry) is reached


HOSTILE_EVENTS = {
    "nothing": b"",
    "no id": b'{"transcript_path":"/etc/passwd"}',
    "a path as the id": b'{"session_id":"../../x","transcript_path":"/etc/passwd"}',
    "a pattern as the id": b'{"session_id":"*","transcript_path":"/etc/passwd"}',
    "shell text": b'{"session_id":"$(touch x)","transcript_path":"`touch x`"}',
    "bytes": b"\xff\xfe\x00{",
    "10 MB": b'{"session_id":"' + b"1" * 10_000_000,
    "the id late": b'{"x":"' + b"y" * 5_000 + b'","session_id":"%s"}' % SESSION.encode(),
}


@pytest.mark.parametrize("name", HOSTILE_EVENTS)
def test_hostile_events_are_ignored(plugin: PluginCopy, name: str) -> None:
    """If the event is hostile, the script reads no file and does not call Python."""
    write_transcript(plugin, [answer_with_usage(INPUT_USAGE)])
    assert not stop_hook_calls_python(plugin, HOSTILE_EVENTS[name])


@pytest.mark.parametrize(
    "note_content",
    ["", "x", '{"look": }', '{"look": "9"}', '{"look": -5}', '"look": 99999999999999999999'],
)
def test_a_damaged_note_is_replaced(plugin: PluginCopy, note_content: str) -> None:
    """If the note about the limit is damaged, the script calls Python, which can then write a new note.

    If the number in the note is larger than any context, Python is not called.
    """
    body = make_stop_event(write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]))
    write_note(plugin, 0).write_text(note_content)
    assert stop_hook_calls_python(plugin, body) is ("999" not in note_content)


def test_a_long_event_is_read_completely(plugin: PluginCopy) -> None:
    """The script reads a long event to its end, so that the client can write all of it to the pipe.

    The event is long because it contains the last answer.
    """
    body = make_stop_event(
        write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]),
        last_assistant_message="語" * 500_000,
    )
    assert stop_hook_calls_python(plugin, body)


def links_folder(plugin: PluginCopy) -> Path:
    """Create the folder for the links and return it. Links are made only if this folder exists."""
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "held"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def list_links(plugin: PluginCopy) -> dict[str, int]:
    """Return the relative paths of all links, each with its file's number of hard links."""
    top = links_folder(plugin)
    return {
        str(path.relative_to(top)): path.stat().st_nlink
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_the_end_of_a_turn_links_the_session(plugin: PluginCopy, shell: list[str]) -> None:
    """After a turn, the script links the session's file and the files in the session's folder.

    Files that are added later are linked too, even in headless runs. If the folder for links does
    not exist, no links are made.
    """
    path = write_transcript(plugin, conversation(1))
    own, body = path.with_suffix(""), make_stop_event(path)
    assert not stop_hook_calls_python(plugin, body, *shell)
    assert not (Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks").exists()
    links_folder(plugin)
    assert not stop_hook_calls_python(plugin, body, *shell, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert list_links(plugin) == {f"-work/{SESSION}.jsonl": 2}
    for name in (
        "subagents/agent-1.jsonl",
        "tool-results/an output.txt",
        "tool-results/-f.txt",
        "plan.md",
    ):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("x")
        for folder in links_folder(plugin).rglob("*/"):
            os.utime(folder, (1, 1))  # Some shells compare file times only in whole seconds.
        assert not stop_hook_calls_python(plugin, body, *shell)
        assert list_links(plugin)[f"-work/{SESSION}/{name}"] == 2
    assert len(list_links(plugin)) == 5
    assert {
        path.stat().st_mode & 0o777 for path in links_folder(plugin).rglob("*") if path.is_dir()
    } == {0o700}


def test_the_end_of_a_turn_links_a_hundred_files_at_most(plugin: PluginCopy) -> None:
    """After a turn, the script links at most a hundred files of a folder, so that it causes no long delay."""
    path = write_transcript(plugin, conversation(1))
    links_folder(plugin)
    for number in range(150):
        output = path.with_suffix("") / "tool-results" / f"{number}.txt"
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch()
    stop_hook_calls_python(plugin, make_stop_event(path))
    assert len(list_links(plugin)) == 101


def test_the_end_of_a_turn_restores_a_removed_link(plugin: PluginCopy) -> None:
    """After a turn, the script makes a removed link again.

    If another program has replaced the session's file, the old link stays until the next check.
    """
    path = write_transcript(plugin, conversation(1))
    links_folder(plugin)
    stop_hook_calls_python(plugin, make_stop_event(path))
    link = links_folder(plugin) / "-work" / path.name
    link.unlink()
    stop_hook_calls_python(plugin, make_stop_event(path))
    assert link.samefile(path)
    path.unlink()
    write_transcript(plugin, conversation(2))
    stop_hook_calls_python(plugin, make_stop_event(path))
    assert not link.samefile(path)


def test_the_end_of_a_turn_links_no_file_outside_the_projects_folders(
    plugin: PluginCopy, tmp_path: Path
) -> None:
    """After a turn, the script makes no links to symbolic links or files outside the projects' folders.

    It makes no links in a folder that is a symbolic link.
    """
    path = write_transcript(plugin, conversation(1))
    links_folder(plugin)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{SESSION}.jsonl").write_text("x")
    (outside / "secret").write_text("x")
    for place in (outside, "/a/../-work/..", path.parent / ".." / "-wo*rk"):
        stop_hook_calls_python(plugin, make_stop_event(f"{place}/{SESSION}.jsonl"))
    assert set(list_links(plugin)) <= {f"-work/{SESSION}.jsonl"}
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "one").symlink_to(outside / "secret")
    (path.with_suffix("") / "all").symlink_to(outside)
    stop_hook_calls_python(plugin, make_stop_event(path))
    assert set(list_links(plugin)) == {f"-work/{SESSION}.jsonl"}
    shutil.rmtree(links_folder(plugin))
    links_folder(plugin).rmdir()
    (Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "held").symlink_to(outside)
    stop_hook_calls_python(plugin, make_stop_event(path))
    (Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "held").unlink()
    (links_folder(plugin) / "-work").symlink_to(outside)
    stop_hook_calls_python(plugin, make_stop_event(path))
    assert sorted(each.name for each in outside.iterdir()) == [f"{SESSION}.jsonl", "secret"]
    assert {each.stat().st_nlink for each in outside.iterdir()} == {1}


@pytest.mark.parametrize(
    "system_call", ["execve", "link,linkat", "mkdir,mkdirat", "clone,clone3,fork,vfork"]
)
def test_killing_the_script_loses_no_file(
    plugin: PluginCopy, tmp_path: Path, system_call: str
) -> None:
    """If the script is killed during ``system_call``, the next check makes the missing links.

    The script makes several such calls; the test kills it at each of them in turn. No file of the
    session is changed.
    """
    require_for_test(
        "strace", shutil.which("strace") is not None, "install the system package strace"
    )
    path = write_transcript(plugin, conversation(1))
    for name in ("subagents/agent-1.jsonl", "tool-results/1.txt", "tool-results/2.txt"):
        (path.with_suffix("") / name).parent.mkdir(parents=True, exist_ok=True)
        (path.with_suffix("") / name).write_text(name)
    was = {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()}
    counts = []
    for count in range(1, 25):  # ``mkdir -p`` makes one system call for each folder in the path.
        shutil.rmtree(links_folder(plugin))
        links_folder(plugin)
        inject = f"inject={system_call}:signal=SIGKILL:when={count}"
        plugin.run_hook(
            "Stop",
            make_stop_event(path),
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            inject,
            "/bin/sh",
        )
        assert {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()} == was
        assert set(list_links(plugin).values()) <= {2}
        counts.append(len(list_links(plugin)))
        link_sessions.link_all_sessions(Where(plugin.env), lambda: False)
        assert list_links(plugin) == dict.fromkeys(
            [f"-work/{each.relative_to(path.parent)}" for each in sorted(was)], 2
        )
    assert min(counts) < len(was) == counts[-1]


def test_the_end_of_a_turn_costs_three_small_programs(plugin: PluginCopy, tmp_path: Path) -> None:
    """If no check is due after a turn, only the client's shell, ``cat``, ``tail`` and ``awk`` run.

    If the event contains no session, only the shell and ``cat`` run.
    """
    require_for_test(
        "strace", shutil.which("strace") is not None, "install the system package strace"
    )
    write_note(plugin, 160_000)
    body = make_stop_event(write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]))
    traced = tmp_path / "trace"
    strace = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", str(traced), "/bin/sh"]
    for given, programs in ((body, ["awk", "cat", "sh", "tail"]), (b"{}", ["cat", "sh"])):
        done = plugin.run_hook("Stop", given, *strace)
        assert (done.returncode, done.stdout) == (0, b"")
        assert sorted(set(re.findall(r'execve\("[^"]*/(\w+)"', traced.read_text()))) == programs
    links_folder(plugin)
    agents = (
        write_transcript(plugin, [answer_with_usage(INPUT_USAGE)]).with_suffix("") / "subagents"
    )
    agents.mkdir(parents=True)
    for extra_programs in (["ln", "mkdir"], [], ["ln", "mkdir"], [], ["touch"], []):
        if extra_programs == ["touch"]:
            (agents / "2.jsonl").unlink()
        elif extra_programs:
            (agents / f"{len(list_links(plugin))}.jsonl").write_text("x")
        for folder in links_folder(plugin).rglob("subagents") if extra_programs else ():
            os.utime(folder, (1, 1))
        assert plugin.run_hook("Stop", body, *strace).returncode == 0
        programs = ["awk", "cat", *extra_programs, "sh", "tail"]
        assert sorted(set(re.findall(r'execve\("[^"]*/(\w+)"', traced.read_text()))) == sorted(
            programs
        )
