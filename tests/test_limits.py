"""Tests that huge files, lines, texts, nesting and folders need only limited memory and time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import settings
from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.errors import RecordNestedTooDeeply, ResumeHooksError
from resume_hooks.hooks import confirmations, hook_replies, hook_state, prompt, triggers
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.reading.outline import make_outline
from resume_hooks.reading.passages import TurnReader
from resume_hooks.search import query
from resume_hooks.search.index.connect import open_index
from resume_hooks.sessions import child_titles, link_log
from resume_hooks.sessions.locate import session_file
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts import raw_edit, records
from resume_hooks.transcripts.context_size import measure_context_from_tail
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.fuzz.targets.hooks import run_hook_main
from tests.fuzz.targets.target import assert_expected_error
from tests.needs import REPO

GIGABYTE = 1024**3
MAX_CPU_SECONDS = 3.0
"""Maximum CPU time in seconds. Every step of the tests normally takes a few hundredths of a second.

A regular expression with quadratic time would take minutes.
"""

REPEATED_BEGINNINGS = (
    "a", "\x1b[", "\x1b]", "\x9d", "<command-name>", "<system-reminder>", "``` ", "[", "(", "- [ ] ", "https://", "../",
    '"', "'", "{", "\n", "> ", "==", "-----BEGIN ", "eyJ", "x@y.", " \t", "\\", " · handoff 2", "[SESSION LINEAGE]",
    "echo a | ", "key=", "</", "#", "1. ",
)  # fmt: skip
"""Beginnings of texts that the plugin's regular expressions match.

In a text that repeats such a beginning many times, an expression is slow if it searches from each
beginning to the end of the text.
"""


def write_sparse_file(path: Path, size: int, start: bytes = b"") -> None:
    """Write a file of ``size`` bytes that begins with ``start``; the zeros after it take no disk space."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(path, "wb") as stream:
        stream.write(start)
        stream.truncate(size)


def test_state_files_of_a_gigabyte_count_as_missing(config_home: ConfigHome) -> None:
    """A state file of a gigabyte is not read. It counts as missing and stays unchanged."""
    state = config_home.config / "resume-hooks"
    write_sparse_file(state / "links.jsonl", GIGABYTE)
    write_sparse_file(state / "settings.json", GIGABYTE, b"{")
    write_sparse_file(state / "pending" / f"trim-{SESSION}.json", GIGABYTE, b"{")
    began = time.process_time()
    assert link_log.read_links(config_home.where) == []
    assert settings.load_settings(config_home.where)["notice_percent"].source == "default"
    assert settings.describe_invalid_settings(config_home.where)
    assert confirmations.find_question(SESSION) is None
    assert time.process_time() - began < MAX_CPU_SECONDS
    assert (state / "links.jsonl").stat().st_size == GIGABYTE


def test_ten_thousand_notes_are_read_quickly(config_home: ConfigHome) -> None:
    """Within the time limit, ten thousand notes are listed and one of them is read."""
    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    for number in range(10_000):
        (folder / f"handoff-{number}-x.json").touch(0o600)
    began = time.process_time()
    assert hook_state.read_note("x") == {}
    assert len(hook_state.list_note_names("handoff-")) == 10_000
    hook_state.delete_old_notes("trim-")
    assert time.process_time() - began < MAX_CPU_SECONDS


@pytest.mark.parametrize("beginning", REPEATED_BEGINNINGS)
def test_repeated_text_is_processed_in_linear_time(config_home: ConfigHome, beginning: str) -> None:
    """Every function processes a repetitive text of 60,000 characters within the time limit.

    The text is used as a prompt, a command, an output, an answer and a title.
    """
    text = beginning * (60_000 // len(beginning)) + "!"
    rows = [
        user(text, uuid="u"),
        tool_use("c", uuid="t", parent="u", name="Bash", tool_input={"command": text}),
        tool_result("c", text, uuid="r", parent="t"),
        assistant(text, uuid="a", parent="r", tokens=5_000),
        user("next", uuid="n", parent="a"),
        custom_title(text),
    ]
    session = session_file(write_session(config_home.project(), SESSION, rows))

    def update_index() -> None:
        with open_index(config_home.where):
            pass

    acts: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain_text(text),
        "trigger": lambda: triggers.recognise_trigger(f">{text}"),
        "query": lambda: _parse_query(text),
        "title": lambda: child_titles.root_title_of(text),
        "trim": lambda: plan.plan_trim(
            plan.scan_session(session), config_home.where, Options(threshold=80, keep_recent=0)
        ),
        "handoff": lambda: agents.plan_fresh_child(session, config_home.where, kind="handoff"),
        "outline": lambda: make_outline(session),
        "reading": lambda: TurnReader(session),
        "fsck": lambda: examine_session(session, config_home.where),
        "index": update_index,
    }
    for name, act in acts.items():
        began = time.process_time()
        act()
        assert time.process_time() - began < MAX_CPU_SECONDS, name


def _parse_query(text: str) -> None:
    try:
        query.parse_query([text])
    except ResumeHooksError as error:
        assert_expected_error(error)


def test_long_titles_are_cut_everywhere(config_home: ConfigHome) -> None:
    """A title of ten megabytes is cut to 80 characters in a child, and no card becomes too long."""
    path = write_session(
        config_home.project(), SESSION, [*conversation(2), custom_title("t" * 10_000_000)]
    )
    began = time.process_time()
    decided = agents.plan_fresh_child(session_file(path), config_home.where, kind="handoff")
    assert len(decided.draft.find_free_title()) <= 80
    event = {"session_id": SESSION, "transcript_path": path, "prompt": ">resume"}
    assert (
        len(run_hook_main(prompt.main, json.dumps(event).encode()))
        < 2 * hook_replies.MAX_REASON_UTF16_UNITS
    )
    assert time.process_time() - began < MAX_CPU_SECONDS
    assert HeadTail(path).title is not None


def test_a_line_of_a_hundred_megabytes_needs_limited_memory(
    config_home: ConfigHome,
) -> None:
    """If a session contains a line of 100 MB, triggers need less than 1.6 GB of memory."""
    rows = [*conversation(2), user("x" * 100_000_000, uuid="big", parent="r3", ts=9)]
    path = write_session(config_home.project(), SESSION, rows)
    program = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1_600_000_000,) * 2)
from resume_hooks.hooks import prompt
from tests.fuzz.targets.hooks import run_hook_main
from tests.fuzz.targets.target import assert_expected_error
for text in (">resume", ">handoff go on", ">lineage"):
    event = {"session_id": sys.argv[2], "transcript_path": sys.argv[1], "prompt": text}
    said = json.loads(run_hook_main(prompt.main, json.dumps(event).encode()))["reason"]
    assert "resume-hooks failed" not in said, said
"""
    environ = {**os.environ, **config_home.environ, "RESUME_HOOKS_CLIPBOARD": "none"}
    environ["PYTHONPATH"] = f"{REPO / 'src'}:{REPO}"
    done = subprocess.run(
        [sys.executable, "-c", program, path, SESSION],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr[-2_000:]) == (0, "")


def test_deep_nesting_does_not_crash() -> None:
    """Deeply nested JSON causes no crash: the record is treated as invalid or cannot be written."""
    assert records.parse_record(b'{"a":' * 100_000 + b"1" + b"}" * 100_000) is None
    assert hook_replies.parse_event(b"[" * 1_000_000) is None
    value: Any = "x"
    for _ in range(5_000):
        value = [value]
    with pytest.raises(RecordNestedTooDeeply):
        raw_edit.encode_record({"uuid": "u", "a": value, "b": "\ud800"})
    assert list(records.iterate_strings(value)) == ["x"]


@pytest.mark.parametrize("invalid_type", [{}, [], {"a": 1}, [1], None, 5, True, 1.5])
def test_a_type_that_is_not_a_string_is_unknown(
    config_home: ConfigHome, invalid_type: object
) -> None:
    """If the type of a record or block is not a string, the other records are still read."""
    rows: list[Any] = [
        {"type": invalid_type, "uuid": "x", "sessionId": SESSION},
        user(
            [
                {"type": invalid_type, "text": "a", "tool_use_id": "c"},
                {"type": "text", "text": "hello"},
            ],
            uuid="u",
        ),
        tool_result("c", [{"type": invalid_type}], uuid="r", parent="u"),
        assistant(
            [{"type": invalid_type}, {"type": "text", "text": "done"}],
            uuid="a",
            parent="r",
            tokens=5_000,
        ),
        {
            **user("again", uuid="a", parent="u"),
            "sentAsUuid": invalid_type,
            "is_error": invalid_type,
        },
    ]
    session = session_file(write_session(config_home.project(), SESSION, rows))
    make_outline(session)
    TurnReader(session)
    examine_session(session, config_home.where)
    plan.plan_trim(
        plan.scan_session(session), config_home.where, Options(threshold=80, keep_recent=0)
    )
    with open_index(config_home.where) as index:
        assert index.notes == []


@pytest.mark.parametrize("count", [2**64, 10**30, -(2**70), 1e308, float("nan"), True, "5"])
def test_impossible_token_counts_are_limited(config_home: ConfigHome, count: object) -> None:
    """Impossible token counts are limited to a maximum, so that a child of the session can be written."""
    usage = {"input_tokens": count, "output_tokens": count, "cache_read_input_tokens": count}
    answer = json.dumps(assistant("done", uuid="a", parent="u", tokens=usage)).encode()
    rows: list[Any] = [user("hello", uuid="u"), answer, user("so", uuid="v", parent="a")]
    session = session_file(write_session(config_home.project(), SESSION, rows))
    assert 0 <= measure_context_from_tail(session.path).tokens <= 4 * records.MAX_CONTEXT_TOKENS
    made = write_child(agents.plan_fresh_child(session, config_home.where), config_home.where)
    assert Path(made.file).is_file()
    plan.plan_trim(plan.scan_session(session), config_home.where, Options(threshold=80))


def test_a_number_beyond_64_bits_is_kept() -> None:
    """A number of more than 64 bits stays unchanged if another field of its record is set."""
    body = b'{"parentUuid":18446744073709551616,"uuid":"a"}'
    record = records.parse_record(body)
    assert record is not None
    assert raw_edit.set_fields(body, record, {"uuid": "b"}) == body.replace(b'"a"', b'"b"')
    assert records.parse_record(raw_edit.set_fields(body, record, {"parentUuid": "p"})) == {
        "parentUuid": "p",
        "uuid": "a",
    }
