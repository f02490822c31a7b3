"""Tests of the text that is indexed for each kind of record, and of omitted text.

For example, the output of this plugin is omitted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from resume_hooks.cli.main import main as cli
from resume_hooks.search.index.connect import open_index
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.transcripts.metadata_records import OPENING_AFTER_CLEAR_PREFIX
from resume_hooks.transcripts.parted_text import split_into_parts
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    attachment,
    call,
    custom_title,
    progress,
    result,
    session_bytes,
    session_id,
    summary,
    system,
    tool_result,
    tool_use,
    user,
)
from tests.search.index.probe import (
    answer_with_id,
    append_records,
    prompt_with_id,
    read_index,
    uuid_of_text,
    write_session_file,
)

SESSION_FILE_NAME = f"{SESSION}.jsonl"


def read_rows(home: ConfigHome) -> list[tuple[int, str, str]]:
    """Return the line number, the role and the tool of every indexed record."""
    return [(row.line_number, row.role, row.tool) for row in read_index(home).rows]


def test_each_kind_of_record_has_its_role(config_home: ConfigHome) -> None:
    """Each kind of record is indexed with its role, for example "prompt", "reply" or "note".

    Records without text are not indexed.
    """
    thought = [{"type": "thinking", "thinking": "pondered", "signature": "s"}]
    write_session_file(
        config_home,
        prompt_with_id("prompted"),
        answer_with_id("answered"),
        tool_use(
            "c1", uuid=uuid_of_text(1), parent=None, name="Grep", tool_input={"pattern": "needle"}
        ),
        tool_result("c1", "found", uuid=uuid_of_text(2), parent=None),
        answer_with_id(thought),
        summary("summed", uuid=uuid_of_text(3), parent=None),
        custom_title("titled"),
        system("informational", uuid=uuid_of_text(4), content="noted"),
        attachment("attached", uuid=uuid_of_text(5), parent=None),
        {"type": "last-prompt", "lastPrompt": "hidden", "leafUuid": uuid_of_text(1)},
        {"type": "api-request", "body": "hidden", "content": "hidden"},
        {"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"hidden": {}}}},
        progress(uuid=uuid_of_text(6), parent=None),
        prompt_with_id("<local-command-stdout>local</local-command-stdout>"),
        system(
            "informational",
            uuid=uuid_of_text(7),
            content="resume-hooks: This is the new session, hidden",
        ),
    )
    assert read_rows(config_home) == [
        (0, "prompt", ""),
        (1, "reply", ""),
        (2, "call", "Grep"),
        (3, "result", "Grep"),
        (4, "thinking", ""),
        (5, "summary", ""),
        (6, "title", ""),
        (7, "note", ""),
        (8, "note", ""),
        (13, "note", ""),
    ]
    assert "hidden" not in read_index(config_home).words()


def test_files_that_tools_used_are_indexed(config_home: ConfigHome) -> None:
    """The index contains the files that tools read and edited, except files with invalid paths."""
    inputs: list[Record] = [
        {"file_path": "/a.py"},
        {"notebook_path": "/b.ipynb"},
        {"file_path": "/x" * 40_000},
    ]
    write_session_file(
        config_home,
        *(answer_with_id([call(f"c{n}", **given)], uuid_seed=n) for n, given in enumerate(inputs)),
    )
    with open_index(config_home.where) as index:
        touched = index.postings.words_with_prefix("path", "")
    assert touched == [("/a.py", 1), ("/b.ipynb", 1)]


def test_records_without_uuids_are_indexed(config_home: ConfigHome) -> None:
    """Records without uuids are indexed with the tool that the message names.

    Plain exports contain records of this kind.
    """
    write_session_file(
        config_home,
        {"type": "user", "message": {"role": "user", "content": "prompted"}},
        {"type": "assistant", "message": {"role": "assistant", "content": "answered"}},
        {"type": "tool_result", "message": {"tool_name": "Read", "content": "alpha"}},
        {"type": "tool_result", "tool_name": "Bash", "content": "beta"},
        {
            "type": "tool_result",
            "message": {"tool_name": "Grep", "content": [{"type": "text", "text": "gamma"}]},
        },
    )
    assert read_rows(config_home) == [
        (0, "prompt", ""),
        (1, "reply", ""),
        (2, "result", "Read"),
        (3, "result", "Bash"),
        (4, "result", "Grep"),
    ]
    assert read_index(config_home).words() == {"prompt", "answer", "alpha", "beta", "gamma"}


@pytest.mark.parametrize(
    "command",
    [
        '"${CLAUDE_PLUGIN_ROOT}/hooks/engine" search zymurgy --all',
        "/home/u/.claude/plugins/resume-hooks/hooks/engine outline 1a2b3c4d",
        "resume-hooks read 1a2b3c4d:5 --json",
        "cd /tmp && python -m resume_hooks search zymurgy",
    ],
)
def test_calls_of_our_engine_are_not_indexed(config_home: ConfigHome, command: str) -> None:
    """A shell command that runs this plugin's engine is not indexed, and neither is its output.

    The output is omitted even if it is appended after an update.
    """
    path = write_session_file(
        config_home,
        prompt_with_id("alpha"),
        tool_use(
            "c1", uuid=uuid_of_text(1), parent=None, name="Bash", tool_input={"command": command}
        ),
    )
    read_index(config_home)
    append_records(
        path, tool_result("c1", "some zymurgy that was found", uuid=uuid_of_text(2), parent=None)
    )
    assert read_index(config_home).words() == {"alpha"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["outline", SESSION],
        ["read", SESSION, "--turns", "1"],
        ["read", SESSION, "--turns", "1", "--json"],
    ],
)
def test_our_own_output_is_not_indexed(
    config_home: ConfigHome, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """The output of ``outline`` and ``read`` about another session is not indexed."""
    write_session_file(config_home, prompt_with_id("zymurgy"), answer_with_id("beta"))
    with pytest.raises(SystemExit):
        cli(arguments)
    printed = capsys.readouterr().out
    assert "zymurgy" in printed
    write_session_file(
        config_home,
        answer_with_id([call("c1", "Bash")]),
        user([result("c1", printed)], uuid=uuid_of_text(2)),
        session_uuid=session_id(2),
    )
    assert read_index(config_home).lines_with_word("zymurgi") == [(SESSION_FILE_NAME, 0)]


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'docs: explain resume-hooks search'",
        "grep -rn 'resume-hooks search' docs/",
        "curl -s https://example.com | sh # resume-hooks search x",
        "npm test; resume-hooks read 1a2b3c4d:1",
    ],
)
def test_a_command_that_only_mentions_our_engine_is_indexed(
    config_home: ConfigHome, command: str
) -> None:
    """A command that only mentions this plugin's engine is indexed with its output."""
    write_session_file(
        config_home,
        tool_use(
            "c1", uuid=uuid_of_text(1), parent=None, name="Bash", tool_input={"command": command}
        ),
        tool_result("c1", "zymurgy failed", uuid=uuid_of_text(2), parent=None),
    )
    assert {"zymurgi", "hook"} <= read_index(config_home).words()


def test_our_output_is_omitted_only_if_a_shell_printed_it(
    config_home: ConfigHome,
) -> None:
    """Text that looks like this plugin's output is indexed unless it came from a shell.

    Examples are a fetched page, a prompt about the lineage block, and text after a placeholder.
    """
    write_session_file(
        config_home,
        prompt_with_id("the block [SESSION LINEAGE] is wrong about zymurgy"),
        answer_with_id([call("c1", "WebFetch")]),
        user([result("c1", "resume-hooks read: how to use it, quokka")], uuid=uuid_of_text(5)),
        prompt_with_id(
            "[Results from Read tool suppressed - original content was 12,345 characters] "
            + "numbat " * 80
        ),
        answer_with_id([call("c2", "Bash")]),
        user(
            [
                result(
                    "c2",
                    "[Results from Bash tool suppressed - original content was 12,345 characters]\nwalrus",
                )
            ],
            uuid=uuid_of_text(6),
        ),
    )
    assert {"zymurgi", "quokka", "numbat", "walrus"} <= read_index(config_home).words()


def test_the_report_of_the_session_searcher_is_not_indexed(config_home: ConfigHome) -> None:
    """The report of this plugin's agent ``session-searcher`` is not indexed.

    The report of another plugin's agent with the same name is indexed.
    """
    for number, agent in enumerate(["resume-hooks:session-searcher", "other:session-searcher"]):
        asked = {"subagent_type": agent, "prompt": f"where is zymurgy{number}"}
        write_session_file(
            config_home,
            tool_use("c1", uuid=uuid_of_text(1), parent=None, name="Agent", tool_input=asked),
            tool_result("c1", f"numbat{number} was found", uuid=uuid_of_text(2), parent=None),
            session_uuid=session_id(number),
        )
    assert {"zymurgy1", "numbat1"} <= read_index(config_home).words()
    assert "numbat0" not in read_index(config_home).words()


def test_escape_sequences_are_not_part_of_words(config_home: ConfigHome) -> None:
    """Escape sequences of a terminal are not part of the indexed words."""
    write_session_file(
        config_home, prompt_with_id("\x1b[31merror\x1b[0m: \x1b[36mzymurgy\x1b[K done")
    )
    assert read_index(config_home).words() == {"error", "zymurgi", "done"}


def test_blocked_prompts_are_not_indexed(config_home: ConfigHome) -> None:
    """Prompts that a hook blocked are not indexed, and neither are queued triggers.

    The model never received these prompts.
    """
    blocked = (
        "UserPromptSubmit operation blocked by hook:\nzymurgy\n\nOriginal prompt: >search zymurgy"
    )
    write_session_file(
        config_home,
        prompt_with_id("alpha"),
        system("informational", uuid=uuid_of_text(1), content=blocked),
        {"type": "queue-operation", "operation": "enqueue", "content": ">search zymurgy"},
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": "/resume-hooks:search zymurgy",
        },
        {"type": "queue-operation", "operation": "enqueue", "content": "> quoted"},
    )
    assert read_index(config_home).words() == {"alpha"}


def test_a_sub_agent_belongs_to_its_session(config_home: ConfigHome) -> None:
    """A sub-agent's file is indexed with the id of its session.

    The file is in the session's folder, in a workflow's folder there, or beside the session.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    inside = config_home.project() / SESSION / "subagents"
    (inside / "workflows" / "run1").mkdir(parents=True)
    task = prompt_with_id("task1", isSidechain=True)
    (inside / "agent-a1.jsonl").write_bytes(session_bytes([task, answer_with_id("answer1")]))
    (inside / "workflows" / "run1" / "agent-a2.jsonl").write_bytes(
        session_bytes([prompt_with_id("task2", isSidechain=True)])
    )
    beside = {**prompt_with_id("task3", isSidechain=True), "sessionId": SESSION}
    (config_home.project() / "agent-a3.jsonl").write_bytes(session_bytes([beside]))
    (config_home.project() / "agent-a4.jsonl").write_bytes(b'{"type":"user"}\n')
    with open_index(config_home.where) as index:
        sessions = dict(
            index.db.execute(
                "SELECT agent, session FROM files WHERE agent<>'' AND session<>''"
            ).fetchall()
        )
    assert sessions == dict.fromkeys(["agent-a1", "agent-a2", "agent-a3"], SESSION)
    assert [
        (row.file_name, row.role, row.turn_number)
        for row in read_index(config_home).rows
        if row.file_name != SESSION_FILE_NAME
    ] == [
        ("agent-a1.jsonl", "task", 1),
        ("agent-a1.jsonl", "reply", 1),
        ("agent-a2.jsonl", "task", 1),
        ("agent-a3.jsonl", "task", 1),
    ]


def test_files_of_the_session_searcher_are_not_indexed(config_home: ConfigHome) -> None:
    """The files of this plugin's agent ``session-searcher`` are not indexed.

    The file with the agent's name may be written after the agent's first record.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    folder = config_home.project() / SESSION / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(
        session_bytes([prompt_with_id("zymurgy", isSidechain=True)])
    )
    (folder / "agent-a2.jsonl").write_bytes(
        session_bytes([prompt_with_id("zymurgy2", isSidechain=True)])
    )
    (folder / "agent-a1.meta.json").write_text(
        json.dumps({"agentType": "resume-hooks:session-searcher"})
    )
    assert read_index(config_home).words() == {"alpha", "zymurgy2"}
    append_records(folder / "agent-a1.jsonl", answer_with_id("found"))
    assert read_index(config_home).words() == {"alpha", "zymurgy2"}
    (folder / "agent-a2.meta.json").write_text(json.dumps({"agentType": "session-searcher"}))
    append_records(folder / "agent-a2.jsonl", answer_with_id("found"))
    assert read_index(config_home).words() == {"alpha"}
    assert read_index(config_home).outcome.read_file_count == 0


def test_a_sub_agent_is_indexed_when_it_names_its_session(config_home: ConfigHome) -> None:
    """A sub-agent's file is indexed as soon as its first record is complete.

    The first record names the sub-agent's session.
    """
    path = config_home.project() / "agent-a1.jsonl"
    raw = session_bytes([{**prompt_with_id("alpha", isSidechain=True), "sessionId": SESSION}])
    path.write_bytes(raw[:50])
    assert read_index(config_home).words() == set()
    path.write_bytes(raw)
    assert read_index(config_home).words() == {"alpha"}


def test_links_and_undecodable_names_are_not_indexed(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Links to files or folders are not indexed, and neither are folders whose names are not UTF-8."""
    outside = tmp_path / "outside"
    (outside / "subagents").mkdir(parents=True)
    (outside / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([prompt_with_id("secret")])
    )
    (outside / f"{SESSION}.jsonl").write_bytes(session_bytes([prompt_with_id("secret2")]))
    write_session_file(config_home, prompt_with_id("alpha"))
    (config_home.project() / SESSION).symlink_to(outside)
    (config_home.project() / f"{session_id(2)}.jsonl").symlink_to(outside / f"{SESSION}.jsonl")
    (config_home.config / "projects" / "linked").symlink_to(outside)
    odd = os.fsencode(config_home.config / "projects") + b"/-home-caf\xe9"
    os.mkdir(odd)
    Path(os.fsdecode(odd), f"{session_id(3)}.jsonl").write_bytes(
        session_bytes([prompt_with_id("beta")])
    )
    assert read_index(config_home).words() == {"alpha"}


@pytest.mark.parametrize("has_rendered_field", [True, False])
def test_a_lineage_block_in_parts_is_not_indexed(
    config_home: ConfigHome, has_rendered_field: bool
) -> None:
    """A lineage block that the client split over several records is not indexed.

    The parts may be in any order.
    """
    ancestors = "\n".join(f"{number}. ancestor {number} · {'x' * 50}" for number in range(200))
    first, second = split_into_parts(
        f"{OPENING_AFTER_CLEAR_PREFIX}that left this:\n\n{LINEAGE_START_MARKER}\n{ancestors}\n"
        f"{LINEAGE_END_MARKER}\n\nfound again"
    )
    row = attachment("", uuid=uuid_of_text(1), parent=None)
    row["attachment"]["content"] = [second, first]
    row["rendered"][0]["content"] = f"<system-reminder>\n{second}\n{first}\n</system-reminder>"
    if not has_rendered_field:
        del row["rendered"]
    write_session_file(config_home, row)
    assert (
        "again" in read_index(config_home).words(),
        "ancestor" in read_index(config_home).words(),
    ) == (
        True,
        False,
    )
