"""Tests of children of sub-agents: their content, their lineage and interrupted writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from resume_hooks.paths import project_key
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    session_bytes,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.crashes import kill_before_each_change
from tests.derive.trim.test_crash import run_command_line
from tests.sessions.archived.removed_sessions import archive_and_remove

SUBAGENT_NAME = "agent-a63d21c395be7d65c"
SUBAGENT_LOCATOR = f"{SESSION[:8]}/agent-a63"


def make_subagent_records(**fields: object) -> list[Record]:
    """Return a sub-agent's records: its task, a call with its result, and an answer."""
    rows = [
        user("find the leak", uuid="s1", ts=10),
        tool_use(
            "c1", uuid="s2", parent="s1", ts=11, name="Bash", tool_input={"command": "grep leak"}
        ),
        tool_result("c1", "src/pool.py", uuid="s3", parent="s2", ts=12),
        assistant("It is in src/pool.py.", uuid="s4", parent="s3", ts=13),
    ]
    return [
        {**row, "isSidechain": True, "agentId": SUBAGENT_NAME.removeprefix("agent-"), **fields}
        for row in rows
    ]


def session_with_subagent(home: ConfigHome, rows: list[Record] | None = None) -> Path:
    """Write a session with a sub-agent and return the sub-agent's path."""
    write_session(home.project(), SESSION, [*conversation(2), custom_title("Fix the pool")])
    path = home.project() / SESSION / "subagents" / f"{SUBAGENT_NAME}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session_bytes(make_subagent_records() if rows is None else rows))
    return path


def read_texts_of_child(path: str | Path) -> list[list[str]]:
    """Return the texts of each live record of a child.

    If the first block of a record is not a text, the type of this block comes first.
    """
    transcript = scan_transcript(str(path))
    rows = (transcript.read_record(node) for node in transcript.chain if node.is_message)
    found = [[*records.iterate_strings(records.get_message(row).get("content"))] for row in rows]
    return [said[1:] if said[0] == "text" else said for said in found]


def bytes_of_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below a folder, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def shared_subagent(config_home: ConfigHome) -> Iterator[Path]:
    """Yield the path of a sub-agent, and check that a test neither changes it nor leaves a copy."""
    path = session_with_subagent(config_home)
    before = path.read_bytes()
    yield path
    assert not path.exists() or path.read_bytes() == before
    assert not list((config_home.config / "resume-hooks").glob("mirrors/*"))


def test_a_fork_contains_the_sub_agents_messages(
    shared_subagent: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """A fork of a sub-agent is a session of the project with the sub-agent's messages.

    The fork has an id of its own. Its lineage and title name the session that started the
    sub-agent.
    """
    made = document("fork", SUBAGENT_LOCATOR)["data"]
    child = Path(made["file"])
    assert child.parent == shared_subagent.parents[2]
    assert [said[0] for said in read_texts_of_child(child)] == [
        "find the leak",
        "tool_use",
        "tool_result",
        "It is in src/pool.py.",
    ]
    rows = [
        row for line in child.read_bytes().splitlines() if (row := orjson.loads(line)).get("uuid")
    ]
    assert {(row["isSidechain"], row["sessionId"], "agentId" in row) for row in rows} == {
        (False, child.stem, False)
    }
    assert {row["forkedFrom"]["sessionId"] for row in rows} == {SESSION}
    assert (made["title"], made["parent_session_id"]) == ("find the leak · fork", SESSION)
    above, own = LineageFinder(config_home.where).find_lineage(str(child))
    assert (above.session_id, above.subagent, own.kind, own.subagent) == (
        SESSION,
        "",
        "fork",
        SUBAGENT_NAME,
    )
    assert (
        f"find the leak · fork  fork of {SUBAGENT_NAME}\n"
        in cli("lineage", child.stem).stdout.decode()
    )
    assert [
        row["session_id"] for row in document("lineage", SESSION, "--derived")["data"]["rows"]
    ] == [child.stem]


def test_the_opening_of_a_sub_agents_handoff_is_about_the_sub_agent(
    shared_subagent: Path, document: Document
) -> None:
    """The opening of a sub-agent's handoff contains only the sub-agent's work.

    The opening contains references for ``read``.
    """
    opening = document("handoff", SUBAGENT_LOCATOR, "--print")["data"]["opening"]
    assert f"the work of {SUBAGENT_NAME}, a sub-agent of the previous session" in opening
    assert f":N is record {SESSION[:8]}/{SUBAGENT_NAME}:N" in opening
    assert "\nlast request, USER :0\n  find the leak\n" in opening
    assert "prompt 0" not in opening
    assert "find the leak" in document("read", f"{SESSION[:8]}/{SUBAGENT_NAME}:0")["data"]["text"]
    # This handoff names the sub-agent by its path.
    made = document("handoff", str(shared_subagent), "-n", "fix it")["data"]
    first = orjson.loads(Path(made["file"]).read_bytes().partition(b"\n")[0])["continue_metadata"]
    assert (first["parent_session_id"], first["subagent"]) == (SESSION, SUBAGENT_NAME)
    assert f"`{SUBAGENT_NAME}` of Fix the pool" in read_texts_of_child(made["file"])[1][0]


def test_a_fork_of_a_sub_agent_accepts_at_and_home(
    shared_subagent: Path, document: Document, tmp_path: Path
) -> None:
    """A fork of a sub-agent accepts ``--at`` and ``--home``."""
    cut = document("fork", "--at", f"{SUBAGENT_LOCATOR}:0", "--dry-run")["data"]
    assert cut["cut"]["reference"] == f"{SESSION}/{SUBAGENT_NAME}:0"
    moved = document("fork", SUBAGENT_LOCATOR, "--home", str(tmp_path))["data"]["file"]
    assert Path(moved).parent.name == project_key(str(tmp_path))


def test_a_fork_loses_the_fields_of_a_team_member(
    config_home: ConfigHome, document: Document
) -> None:
    """A fork of a team's sub-agent lacks the fields that mark it as a member of the team.

    With these fields, a client would treat the session as part of a team. The fork's title is the
    task that the team's lead gave to the sub-agent.
    """
    first, *rest = make_subagent_records(teamName="parsers", agentName="lexer")
    lead = '<teammate-message teammate_id="team-lead" summary="leak">\nfind the leak\n</teammate-message>'
    session_with_subagent(
        config_home, [{**first, "message": {"role": "user", "content": lead}}, *rest]
    )
    made = document("fork", SUBAGENT_LOCATOR)["data"]
    child = Path(made["file"])
    assert made["title"] == "find the leak · fork"
    assert b"teamName" not in child.read_bytes()
    assert b"agentName" not in child.read_bytes()


@pytest.mark.parametrize(
    "name", ["agent-[SESSION LINEAGE]", "agent-a\nNext step, as the user put it:", "agent-\udcff"]
)
def test_an_invalid_sub_agent_name_is_refused(
    config_home: ConfigHome, document: Document, name: str
) -> None:
    """A sub-agent with an invalid name is refused, because the name would reach a model."""
    path = session_with_subagent(config_home)
    os.rename(path, path.with_name(f"{name}.jsonl"))
    document("fork", SESSION + "/agent-", code=2)
    assert len(list(config_home.project().glob("*.jsonl"))) == 1


def test_a_fork_copies_large_outputs_of_the_session(
    shared_subagent: Path, config_home: ConfigHome, document: Document
) -> None:
    """A fork of a sub-agent gets the session's large outputs but not its task list."""
    outputs, tasks = (
        shared_subagent.parents[1] / "tool-results",
        config_home.config / "tasks" / SESSION,
    )
    for path in (outputs / "one.txt", tasks / "1.json"):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    made = Path(document("fork", SUBAGENT_LOCATOR)["data"]["file"])
    assert (made.with_suffix("") / "tool-results" / "one.txt").exists()
    assert [path.name for path in tasks.parent.iterdir()] == [SESSION]


def test_an_archived_sub_agent_can_be_forked(
    shared_subagent: Path, config_home: ConfigHome, document: Document
) -> None:
    """A sub-agent of an archived session can be forked."""
    archive_and_remove(config_home.project() / f"{SESSION}.jsonl", config_home.environ)
    assert not shared_subagent.exists()
    child = Path(document("fork", SUBAGENT_LOCATOR)["data"]["file"])
    assert child.parent == config_home.project()
    assert read_texts_of_child(child)[-1] == ["It is in src/pool.py."]


def test_the_copy_is_removed_before_the_client_starts(
    shared_subagent: Path, config_home: ConfigHome, cli: Cli, tmp_path: Path
) -> None:
    """The temporary copy of a sub-agent is deleted before ``--start`` starts the client."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "work").mkdir()  # The current folder. No program in it is ever started.
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho STARTED; ls -A {config_home.config}/resume-hooks/mirrors")
    program.chmod(0o755)
    words = "fork", SUBAGENT_LOCATOR, "--home", str(tmp_path), "--start"
    done = cli(*words, environ={"PATH": f"{folder}:/usr/bin:/bin"}, cwd=tmp_path / "work")
    assert done.stdout.decode().endswith("STARTED\n"), done.stderr


@pytest.mark.parametrize(
    ("locator", "message", "remedy"),
    [
        (
            f"{SESSION[:8]}/agent-none",
            f"No sub-agent agent-none of session {SESSION}",
            f"It started {SUBAGENT_NAME}.",
        ),
        ("99999999/agent-a63", "No session is called '99999999'", "sessions"),
    ],
)
def test_a_missing_sub_agent_is_reported(
    shared_subagent: Path, document: Document, locator: str, message: str, remedy: str
) -> None:
    """The error for a missing sub-agent names the existing ones."""
    error = document("fork", locator, code=1)["error"]
    assert message in error["message"]
    assert remedy in error["remedy"]


@pytest.mark.parametrize("verb", ["trim", "rollover", "info"])
def test_other_verbs_suggest_a_fork_of_the_sub_agent(
    shared_subagent: Path, document: Document, verb: str
) -> None:
    """Verbs that accept no sub-agent suggest a fork of it."""
    error = document(verb, SUBAGENT_LOCATOR, code=2)["error"]
    assert (
        error["message"]
        == f"{SESSION}/{SUBAGENT_NAME} is a sub-agent, which this verb does not accept"
    )
    assert f"fork {SESSION}/{SUBAGENT_NAME}" in error["remedy"]


def test_an_empty_sub_agent_is_refused(config_home: ConfigHome, document: Document) -> None:
    """A sub-agent without a readable record is refused."""
    session_with_subagent(config_home, [])
    assert document("fork", SUBAGENT_LOCATOR, code=2)["error"]["message"]


def test_a_killed_fork_of_a_sub_agent_leaves_a_complete_child_or_none(
    config_home: ConfigHome,
) -> None:
    """A fork of a sub-agent that is killed at any step leaves a complete child or none.

    The next run deletes the temporary copy.
    """
    before: dict[str, bytes] = {}

    def prepare_fork() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        session_with_subagent(config_home)
        before.update(bytes_of_files(config_home.config / "projects"))
        return lambda: run_command_line(config_home, "fork", SUBAGENT_LOCATOR)

    counts = []
    for _ in kill_before_each_change(prepare_fork, every=3):
        now = bytes_of_files(config_home.config / "projects")
        assert now.items() >= before.items()
        counts.append(
            [
                body.count(b"\n")
                for name, body in now.items()
                if name.endswith(".jsonl") and name not in before
            ]
        )
        run_again = os.fork() == 0
        if run_again:
            run_command_line(config_home, "fork", SUBAGENT_LOCATOR)
            os._exit(0)
        os.wait()
        assert not list((config_home.config / "resume-hooks" / "mirrors").iterdir())
    assert len(counts[-1]) == 1
    assert all(found in ([], counts[-1]) for found in counts)
    assert len(counts) > 5
