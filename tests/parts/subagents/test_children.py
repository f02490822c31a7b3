"""Children of sub-agents: what they hold, whose they are said to be, and what is left where the work is cut short."""

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
from tests.crashes import crashes
from tests.derive.trim.test_crash import run
from tests.sessions.archived.away import archive_and_remove

AGENT = "agent-a63d21c395be7d65c"
LOCATOR = f"{SESSION[:8]}/agent-a63"


def work(**fields: object) -> list[Record]:
    """A sub-agent's records: its task, a call with its result, an answer."""
    rows = [
        user("find the leak", uuid="s1", ts=10),
        tool_use(
            "c1", uuid="s2", parent="s1", ts=11, name="Bash", tool_input={"command": "grep leak"}
        ),
        tool_result("c1", "src/pool.py", uuid="s3", parent="s2", ts=12),
        assistant("It is in src/pool.py.", uuid="s4", parent="s3", ts=13),
    ]
    return [
        {**row, "isSidechain": True, "agentId": AGENT.removeprefix("agent-"), **fields}
        for row in rows
    ]


def session_with_subagent(home: ConfigHome, rows: list[Record] | None = None) -> Path:
    """Return a session that started a sub-agent with this file."""
    write_session(home.project(), SESSION, [*conversation(2), custom_title("Fix the pool")])
    path = home.project() / SESSION / "subagents" / f"{AGENT}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session_bytes(work() if rows is None else rows))
    return path


def texts(path: str | Path) -> list[list[str]]:
    """Return the texts of each record in a child's live conversation, each with its block's kind."""
    transcript = scan_transcript(str(path))
    rows = (transcript.read_record(node) for node in transcript.chain if node.is_message)
    found = [[*records.strings_in_value(records.get_message(row).get("content"))] for row in rows]
    return [said[1:] if said[0] == "text" else said for said in found]


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def agent(config_home: ConfigHome) -> Iterator[Path]:
    """The same, which no test may change; nor may a copy of it stay."""
    path = session_with_subagent(config_home)
    before = path.read_bytes()
    yield path
    assert not path.exists() or path.read_bytes() == before
    assert not list((config_home.config / "resume-hooks").glob("mirrors/*"))


def test_a_fork_contains_the_sub_agents_messages(
    agent: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """Under an id of its own, in the project of the session that started it, which its lineage and its title tell."""
    made = document("fork", LOCATOR)["data"]
    child = Path(made["file"])
    assert child.parent == agent.parents[2]
    assert [said[0] for said in texts(child)] == [
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
        AGENT,
    )
    assert f"find the leak · fork  fork of {AGENT}\n" in cli("lineage", child.stem).stdout.decode()
    assert [
        row["session_id"] for row in document("lineage", SESSION, "--derived")["data"]["rows"]
    ] == [child.stem]


def test_a_handoff_shows_whose_work_it_is(agent: Path, document: Document) -> None:
    """Its digest is of the sub-agent alone, and names its records by what ``read`` takes."""
    opening = document("handoff", LOCATOR, "--print")["data"]["opening"]
    assert f"the work of {AGENT}, a sub-agent of the previous session" in opening
    assert f":N is record {SESSION[:8]}/{AGENT}:N" in opening
    assert "\nlast request, USER :0\n  find the leak\n" in opening
    assert "prompt 0" not in opening
    assert "find the leak" in document("read", f"{SESSION[:8]}/{AGENT}:0")["data"]["text"]
    made = document("handoff", str(agent), "-n", "fix it")["data"]  # by its path, too
    first = orjson.loads(Path(made["file"]).read_bytes().partition(b"\n")[0])["continue_metadata"]
    assert (first["parent_session_id"], first["subagent"]) == (SESSION, AGENT)
    assert f"`{AGENT}` of Fix the pool" in texts(made["file"])[1][0]


def test_a_cut_and_another_folder(agent: Path, document: Document, tmp_path: Path) -> None:
    """As of any fork."""
    cut = document("fork", "--at", f"{LOCATOR}:0", "--dry-run")["data"]
    assert cut["cut"]["reference"] == f"{SESSION}/{AGENT}:0"
    moved = document("fork", LOCATOR, "--home", str(tmp_path))["data"]["file"]
    assert Path(moved).parent.name == project_key(str(tmp_path))


def test_a_member_of_a_team_is_one_no_more(config_home: ConfigHome, document: Document) -> None:
    """By these fields a client would take the session for a team's.

    It is called by what the lead asked.
    """
    first, *rest = work(teamName="parsers", agentName="lexer")
    lead = '<teammate-message teammate_id="team-lead" summary="leak">\nfind the leak\n</teammate-message>'
    session_with_subagent(
        config_home, [{**first, "message": {"role": "user", "content": lead}}, *rest]
    )
    made = document("fork", LOCATOR)["data"]
    child = Path(made["file"])
    assert made["title"] == "find the leak · fork"
    assert b"teamName" not in child.read_bytes()
    assert b"agentName" not in child.read_bytes()


@pytest.mark.parametrize(
    "name", ["agent-[SESSION LINEAGE]", "agent-a\nNext step, as the user put it:", "agent-\udcff"]
)
def test_a_name_that_no_client_gives(
    config_home: ConfigHome, document: Document, name: str
) -> None:
    """Would be told to a model: nothing is made from it."""
    path = session_with_subagent(config_home)
    os.rename(path, path.with_name(f"{name}.jsonl"))
    document("fork", SESSION + "/agent-", code=2)
    assert len(list(config_home.project().glob("*.jsonl"))) == 1


def test_large_outputs_of_the_session_come_along(
    agent: Path, config_home: ConfigHome, document: Document
) -> None:
    """A sub-agent's lie with those of the session; its task list is not a sub-agent's."""
    outputs, tasks = agent.parents[1] / "tool-results", config_home.config / "tasks" / SESSION
    for path in (outputs / "one.txt", tasks / "1.json"):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    made = Path(document("fork", LOCATOR)["data"]["file"])
    assert (made.with_suffix("") / "tool-results" / "one.txt").exists()
    assert [path.name for path in tasks.parent.iterdir()] == [SESSION]


def test_one_whose_session_was_archived(
    agent: Path, config_home: ConfigHome, document: Document
) -> None:
    """The vault has it with its session."""
    archive_and_remove(config_home.project() / f"{SESSION}.jsonl", config_home.environ)
    assert not agent.exists()
    child = Path(document("fork", LOCATOR)["data"]["file"])
    assert child.parent == config_home.project()
    assert texts(child)[-1] == ["It is in src/pool.py."]


def test_nothing_of_the_copy_is_left_to_a_client_that_is_started(
    agent: Path, config_home: ConfigHome, cli: Cli, tmp_path: Path
) -> None:
    """It takes the process over, so the copy goes before."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "work").mkdir()  # no program of the folder that one works in is started
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho STARTED; ls -A {config_home.config}/resume-hooks/mirrors")
    program.chmod(0o755)
    words = "fork", LOCATOR, "--home", str(tmp_path), "--start"
    done = cli(*words, environ={"PATH": f"{folder}:/usr/bin:/bin"}, cwd=tmp_path / "work")
    assert done.stdout.decode().endswith("STARTED\n"), done.stderr


@pytest.mark.parametrize(
    ("locator", "message", "remedy"),
    [
        (
            f"{SESSION[:8]}/agent-none",
            f"No sub-agent agent-none of session {SESSION}",
            f"It started {AGENT}.",
        ),
        ("99999999/agent-a63", "No session is called '99999999'", "sessions"),
    ],
)
def test_one_that_is_not_there(
    agent: Path, document: Document, locator: str, message: str, remedy: str
) -> None:
    """The searched place, and the existing sub-agents."""
    error = document("fork", locator, code=1)["error"]
    assert message in error["message"]
    assert remedy in error["remedy"]


@pytest.mark.parametrize("verb", ["trim", "rollover", "info"])
def test_other_verbs_say_how_they_get_one(agent: Path, document: Document, verb: str) -> None:
    """As a session of its own."""
    error = document(verb, LOCATOR, code=2)["error"]
    assert error["message"] == f"{SESSION}/{AGENT} is a sub-agent, which this verb does not accept"
    assert f"fork {SESSION}/{AGENT}" in error["remedy"]


def test_nothing_is_made_of_one_without_a_word(config_home: ConfigHome, document: Document) -> None:
    """Nor of a file that no record can be read of."""
    session_with_subagent(config_home, [])
    assert document("fork", LOCATOR, code=2)["error"]["message"]


def test_killed_on_the_way(config_home: ConfigHome) -> None:
    """A child is there whole or not at all; what it was read of is as it was.

    The next run takes a copy away.
    """
    before: dict[str, bytes] = {}

    def prepare() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        session_with_subagent(config_home)
        before.update(files(config_home.config / "projects"))
        return lambda: run(config_home, "fork", LOCATOR)

    counts = []
    for _ in crashes(prepare, every=3):
        now = files(config_home.config / "projects")
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
            run(config_home, "fork", LOCATOR)
            os._exit(0)
        os.wait()
        assert not list((config_home.config / "resume-hooks" / "mirrors").iterdir())
    assert len(counts[-1]) == 1
    assert all(found in ([], counts[-1]) for found in counts)
    assert len(counts) > 5
