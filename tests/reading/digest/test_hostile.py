"""Tests that a digest is built in limited time from wrong types, garbage and huge content."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from resume_hooks.errors import SessionNotFound
from resume_hooks.reading.digest import entries, file_states, session_commands, shell
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.commits import NO_FINAL_COMMITS
from resume_hooks.reading.digest.edited_files import EditedFiles
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.reading.digest.file_states import FileEdit, derive_file_states
from resume_hooks.reading.digest.opening import format_opening, format_whole_digest
from resume_hooks.sessions.locate import SessionFile, session_file
from tests.builders import SESSION, ConfigHome, session_bytes
from tests.reading.digest.talk import Talk, entry_texts

WRONG_TYPE_VALUES: tuple[Any, ...] = (
    None,
    7,
    "x",
    [],
    {},
    [1],
    ["x"],
    [[]],
    {"type": 1},
    True,
    1.5,
    -1,
    [{"type": []}],
    [{"type": "text", "text": 1}],
)
TOOL_NAMES = (
    "Bash",
    "Edit",
    "Read",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "AskUserQuestion",
    "ExitPlanMode",
    "Task",
    "mcp__x_write_file",
)
INPUT_KEYS = (
    "command",
    "file_path",
    "todos",
    "subject",
    "taskId",
    "status",
    "questions",
    "plan",
    "path",
    "run_in_background",
)


def assert_digest_is_valid(digest: Digest) -> None:
    """Check that a digest fits several sizes and can be stored and read."""
    for room in (600, 4_000, 48_000):
        assert len(format_opening(digest, room).text) <= room
    assert all(row.strip() for row in format_whole_digest(digest).split("\n"))
    assert entries.parse_digest(orjson.loads(entries.format_digest_record(digest))) == digest


@pytest.mark.parametrize("value", WRONG_TYPE_VALUES, ids=repr)
def test_invalid_inputs_of_tools_are_accepted(config_home: ConfigHome, value: object) -> None:
    """A digest is built even if tool inputs have values of wrong types."""
    talk = Talk().prompt("go")
    for tool in TOOL_NAMES:
        for key in INPUT_KEYS:
            talk.calls(tool, {key: value})
        talk.calls(tool, {})
        talk.records[-2]["message"]["content"][0]["input"] = value
    assert_digest_is_valid(talk.digest(config_home))


@pytest.mark.parametrize("value", WRONG_TYPE_VALUES, ids=repr)
@pytest.mark.parametrize(
    "field",
    [
        "message",
        "content",
        "uuid",
        "parentUuid",
        "type",
        "cwd",
        "toolUseResult",
        "planContent",
        "attachment",
        "forkedFrom",
        "isSidechain",
        "timestamp",
        "leafUuid",
        "operation",
        "prUrl",
    ],
)
def test_invalid_fields_of_records_are_accepted(
    config_home: ConfigHome, field: str, value: object
) -> None:
    """A digest is built even if a field of every record has a wrong type."""
    talk = (
        Talk()
        .prompt("go")
        .runs("make")
        .says("ok")
        .calls("Task", {}, "x", toolUseResult={"agentId": "a"})
    )
    talk.add({"type": "queue-operation", "operation": "enqueue", "content": "x"}).add(
        {"type": "attachment", "uuid": "z"}
    )
    talk.add({"type": "pr-link", "prUrl": "x"}).add({"type": "last-prompt", "leafUuid": "r1"})
    for record in talk.records:
        record[field] = value
    found = b"".join(orjson.dumps(record) + b"\n" for record in talk.records)
    assert_digest_is_valid(_digest_of_bytes(config_home, found))


@pytest.mark.parametrize("value", WRONG_TYPE_VALUES, ids=repr)
@pytest.mark.parametrize(
    "key", ["type", "id", "name", "input", "text", "tool_use_id", "content", "is_error"]
)
def test_invalid_blocks_are_accepted(config_home: ConfigHome, key: str, value: object) -> None:
    """A digest is built even if a key of every content block has a value of a wrong type."""
    talk = Talk().prompt("go").runs("make").says("ok").edits("/a")
    for record in talk.records:
        for block in (
            record["message"]["content"] if isinstance(record["message"]["content"], list) else []
        ):
            block[key] = value
    assert_digest_is_valid(talk.digest(config_home))


def _digest_of_bytes(home: ConfigHome, content: bytes) -> Digest:
    path = home.project() / f"{SESSION}.jsonl"
    path.write_bytes(content)
    return build_digest(session_file(str(path)), home.where)


@pytest.mark.parametrize(
    "content",
    [
        b"\n\n\n", b"\xff\xfe\x00", b"{", b"[" * 100_000, b'{"a":' * 50_000, b"\xef\xbb\xbf{}", b"{}\r\n{}\r\n",
        b"null\n7\n",
        b'{"type":"user","message":{"content":"\xed\xa0\x80 \\ud800 x"}}', b'{"type":"user","message":{"content":"torn',
    ],
)  # fmt: skip
def test_garbage_is_accepted(config_home: ConfigHome, content: bytes) -> None:
    """A digest of a transcript that ends in garbage still contains the valid records before the garbage."""
    good = session_bytes(Talk().prompt("go").runs("make").records)
    digest = _digest_of_bytes(config_home, good + content)
    assert_digest_is_valid(digest)
    assert entry_texts(digest, "commands") == ["make"]


def test_lone_surrogates_can_be_stored(config_home: ConfigHome) -> None:
    """A lone surrogate in a prompt, path, command or answer doesn't prevent storing the digest."""
    raw = session_bytes(
        Talk().prompt("goX").runs("makeX").edits("/home/user/proj/aX.py").says("doneX").records
    )
    digest = _digest_of_bytes(config_home, raw.replace(b"X", b"\\ud83d"))
    assert_digest_is_valid(digest)
    assert entry_texts(digest, "changed") == ["a\ufffd.py"]


def test_an_unreadable_file_is_reported(config_home: ConfigHome) -> None:
    """Building a digest of a missing file raises ``SessionNotFound`` with a readable message."""
    with pytest.raises(SessionNotFound, match="can't be read"):
        build_digest(SessionFile(SESSION, "/nowhere/x.jsonl", 0, 0), config_home.where)


@pytest.mark.parametrize(
    "commands",
    [
        ["<<a" * 1_300], ["<<a\n" * 900], ['"\\"' * 1_300], ["> a" * 1_300], ["cd a;" * 200_000],
        ["x" + "|head" * 200_000],
        ["cat <<EOF\n" + "EOF " * 200_000], ["'a\"b" * 1_000],
    ],
    ids=["documents", "open documents", "quotes", "targets", "cds", "pipes", "words", "odd quotes"],
)  # fmt: skip
def test_hostile_commands_take_linear_time(config_home: ConfigHome, commands: list[str]) -> None:
    """A digest is built in linear time from long commands with many quotes, redirections or pipes."""
    talk = Talk().prompt("go")
    for number in range(60):
        for command in commands if number % 20 == 0 or len(commands[0]) < 10_000 else []:
            talk.runs(f"{command}{number}")
    assert_digest_is_valid(talk.digest(config_home))


@pytest.mark.parametrize(
    "output",
    [f" x{' ' * 3_900}", " x" + " | " * 1_300, f"modified: {' -> ' * 900}", "https://a/pull/" * 260, f"[{'a ' * 1_900}",
     "=" * 3_900,
     "<task-id>a</task-id>" * 190],
    ids=["blanks", "bars", "arrows", "links", "brackets", "rules", "tasks"],
)  # fmt: skip
def test_hostile_outputs_take_linear_time(config_home: ConfigHome, output: str) -> None:
    """A digest is built in linear time from long outputs that nearly match the patterns for git's output."""
    talk = Talk().prompt("go")
    for number in range(200):
        talk.runs("git status; git commit; git diff --stat; gh pr create", f"{output}{number}")
    assert_digest_is_valid(talk.digest(config_home))


@pytest.mark.parametrize(
    "text",
    ["<ide_a" * 100_000, "".join(f"<ide_a{n}>" for n in range(50_000)), "\x9d" * 500_000, "\x9b" + "0" * 500_000,
     "```\n" * 100_000, "~~~\n```\n" * 50_000, ". " * 300_000, "." + '"' * 500_000, "never " * 200_000,
     "x" * 3_000_000],
    ids=["tags", "kinds of tags", "controls", "sequences", "fences", "odd fences", "ends", "quotes", "words", "long"],
)  # fmt: skip
def test_hostile_texts_take_linear_time(config_home: ConfigHome, text: str) -> None:
    """A digest is built in linear time from huge prompts, answers, plans and paths."""
    talk = (
        Talk().prompt(text).says(text).prompt("go", planContent=text).edits(f"/{text}").says("ok")
    )
    assert_digest_is_valid(talk.digest(config_home))


def test_the_pattern_for_help_takes_linear_time() -> None:
    """The pattern that recognizes a program's help is matched against 40,000 spaces in linear time."""
    begun = time.process_time()
    assert session_commands._HELP_OUTPUT_PATTERN.match(f"OVERVIEW:{' ' * 40_000}") is None
    assert time.process_time() - begun < 1
    assert (
        session_commands._HELP_OUTPUT_PATTERN.match("OVERVIEW: a tool\n\nUSAGE: tool <x>")
        is not None
    )


def test_edits_are_looked_up_in_linear_time() -> None:
    """For 300 checks and 300 edits, checkouts of edits are looked up at most 900 times in total."""
    looked_up: list[str] = []

    def find_checkout(path: str) -> str:
        looked_up.append(path)
        return path[: len("/repo0")]

    edits = [FileEdit(f"/repo{number % 2}/a{number}.py", number) for number in range(300)]
    edited_files = EditedFiles(edits, find_checkout)
    notes = []
    for number in range(300):
        position = RecordPosition(SESSION, number, number)
        notes.append(edited_files.describe_edits_after_passed_check(position, "/repo1/src"))
    assert notes[0] == "150 files edited since"
    assert notes[-4:] == [
        "edited since: a297.py, a299.py",
        "edited since: a299.py",
        "edited since: a299.py",
        "",
    ]
    assert len(looked_up) <= 3 * 300


def test_only_the_latest_folders_with_git_commands_are_checkouts() -> None:
    """If git commands ran in 100 folders, only the latest ``MAX_OTHER_CHECKOUTS`` are treated as checkouts."""
    runs = []
    for number in range(100):
        position = RecordPosition(SESSION, number, number)
        run = ShellRun("git status", position, position, f"/other/r{number}", 0, False, "ok", False)
        runs.append((run, shell.parse_simple_commands("git status")))
    states = derive_file_states([], (), runs, "/home/user/proj", NO_FINAL_COMMITS)
    assert len(states.other_roots) == file_states.MAX_OTHER_CHECKOUTS
    assert states.find_checkout("/other/r99/a.py") == "/other/r99"
