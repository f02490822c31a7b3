"""Tests of ``handoff`` on the command line: the child's opening, its digest, and its files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resume_hooks import clock
from resume_hooks.derive.fresh_child import OPENING_RECORD_LINE_NUMBER
from resume_hooks.reading.char_budget import indent_text
from resume_hooks.reading.digest import opening
from resume_hooks.reading.digest.entries import read_digest
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
from tests.cli.test_every_verb import home_state
from tests.reading.digest.talk import Talk

RECORDED_COMMAND = "make everything"


@pytest.fixture
def project(config_home: ConfigHome) -> Path:
    """Return the folder of a project."""
    folder = config_home.root / "proj"
    folder.mkdir()
    return folder


@pytest.fixture
def parent(config_home: ConfigHome, project: Path) -> Path:
    """Write a session with a title and a command, and return its path."""
    records = [
        *conversation(2),
        tool_use(
            "t1",
            uuid="c1",
            parent="r3",
            ts=10,
            name="Bash",
            tool_input={"command": RECORDED_COMMAND},
        ),
        tool_result("t1", "done", uuid="c2", parent="c1", ts=11),
        custom_title("Fix the parser"),
    ]
    rows = [{**record, "cwd": str(project)} for record in records]
    return Path(write_session(config_home.project(str(project)), SESSION, rows))


def test_a_handoff_writes_only_a_child_with_the_digest(
    config_home: ConfigHome, document: Document, parent: Path, project: Path
) -> None:
    """``handoff`` writes only a child with the digest, and no other file in the project's folder.

    The digest is in the child's opening and in a separate record.
    """
    data = document("handoff", SESSION, "-n", "go on")["data"]
    assert data["documents"] == []
    told = json.loads(Path(data["file"]).read_bytes().splitlines()[OPENING_RECORD_LINE_NUMBER])[
        "message"
    ]["content"]
    assert RECORDED_COMMAND in told
    assert told.endswith("\ngo on")
    kept = read_digest(data["file"])
    assert kept is not None
    assert RECORDED_COMMAND in kept.section_entries("commands")[0].text
    assert list(project.iterdir()) == []


def test_a_repeated_handoff_names_the_existing_child(
    cli: Cli, document: Document, parent: Path, tmp_path: Path
) -> None:
    """A repeated ``handoff`` with the same next step writes nothing and names the existing child.

    ``handoff`` writes a new child if the next step is different, if ``--output-dir`` is given, or
    if the child already has a prompt.
    """
    first = document("handoff", SESSION, "-n", "go on")["data"]
    again = document("handoff", SESSION, "-n", "go on")
    assert (again["data"]["session_id"], again["data"]["written"]) == (first["session_id"], False)
    assert again["data"]["file"] == first["file"]
    assert again["warnings"][0].startswith("No new session was created")
    done = cli("handoff", SESSION, "-n", "go on")
    assert re.match(rb"exists +.*\nid +" + first["session_id"].encode(), done.stdout)
    assert b"would write" not in done.stdout
    made = {first["session_id"]}
    for more in (["-n", "stop"], ["-n", "go on"], ["-n", "go on", "--output-dir", str(tmp_path)]):
        made.add(document("handoff", SESSION, *more)["data"]["session_id"])
    assert len(made) == 4, "only the newest child is named again"
    child = Path(document("handoff", SESSION, "-n", "end")["data"]["file"])
    with child.open("ab") as stream:
        stream.write(session_bytes([user("more", uuid="m", ts=clock.now(), session_id=child.stem)]))
    assert document("handoff", SESSION, "-n", "end")["data"]["file"] != str(child)


def test_handoff_print_shows_the_opening_of_a_child(
    config_home: ConfigHome, cli: Cli, document: Document, parent: Path
) -> None:
    """``handoff --print`` prints the opening that a child would have, and writes nothing.

    ``handoff --print --full`` prints the whole digest.
    """
    before = home_state(config_home)
    text = cli("handoff", SESSION, "--print", "-n", "go on").stdout.decode()
    assert text.startswith("[SESSION LINEAGE]\n")
    assert "all of it" not in text, "there is no such child"
    assert RECORDED_COMMAND in text
    assert text.endswith("\ngo on\n")
    whole = cli("handoff", SESSION, "--print", "--full", "-n", "go on").stdout.decode()
    assert "all of it" not in whole
    assert whole.startswith("[SESSION LINEAGE]\n")
    assert whole.endswith("\ngo on\n")
    data = document("handoff", SESSION, "--print", "-n", "go on")["data"]
    assert set(data) == {"opening", "digest", "full"}
    assert data["opening"].endswith("\ngo on")
    assert data["full"] in whole
    (command,) = data["digest"]["sections"]["commands"]
    assert (command["text"], command["ref"].split(":")[0]) == (RECORDED_COMMAND, SESSION)
    for shown in (text, whole, data["opening"]):
        assert set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", shown)) == {SESSION}, (
            "the child is never made"
        )
        assert re.search(r"^2\. .* · this session\nContext ", shown, re.MULTILINE)
    assert home_state(config_home) == before


def test_a_new_task_keeps_the_commands(
    document: Document, parent: Path, config_home: ConfigHome
) -> None:
    """``handoff --new-task`` keeps the list of commands but drops the earlier requests and the task list."""
    tasks = config_home.config / "tasks" / SESSION
    tasks.mkdir(parents=True)
    (tasks / "1.json").write_text('{"id": "1", "subject": "the old list", "status": "pending"}')
    plain = document("handoff", SESSION, "-n", "go on", "--dry-run")["data"]
    shown = document("handoff", SESSION, "--print", "--new-task", "write the notes")["data"]
    assert set(shown["digest"]["sections"]) == {"commands"}
    assert shown["opening"].endswith("Do not continue that work.\nwrite the notes")
    made = document("handoff", SESSION, "--new-task", "write the notes")["data"]
    assert made["title"].startswith("write the notes · ")
    assert not (tasks.parent / made["session_id"]).exists()
    text = Path(made["file"]).read_text()
    assert RECORDED_COMMAND in text
    assert "**New task:** write the notes" in text
    assert "last request, USER" not in text
    assert "Loaded: a list of commands, but no messages." in text
    assert "0 messages" not in text
    assert made["tokens_after"] <= plain["tokens_after"] + 60


def test_an_unknown_locator_is_suggested_as_a_next_step(cli: Cli, parent: Path) -> None:
    """If the words after ``handoff`` match no session, the error suggests using them as a next step."""
    done = cli("handoff", "do it's part")
    assert done.returncode != 0
    assert b"""resume-hooks handoff -n 'do it'"'"'s part'""" in done.stderr


def test_a_stored_digest_can_be_read_but_not_searched(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``read`` prints the digest of a child completely, and ``search`` does not find its words."""
    Talk().prompt("always use zymurgy").says("We decided on zymurgy instead.").runs(
        "make zymurgy"
    ).write(config_home)
    child = Path(document("handoff", SESSION)["data"]["file"])
    digest = read_digest(str(child))
    assert digest is not None
    done = cli("read", f"{child.stem}:3")
    assert indent_text(opening.format_whole_digest(digest)) in done.stdout.decode()
    hits = document("search", "zymurgy", "--all")["data"]["hits"]
    assert {hit["session_id"] for hit in hits} == {SESSION}


@pytest.mark.parametrize(("size", "is_cut"), [("1k", True), ("12k", False)])
def test_the_card_counts_the_messages_in_the_opening(
    config_home: ConfigHome, document: Document, size: str, is_cut: bool
) -> None:
    """A child's card states how many messages the opening contains and how many it omits."""
    said = [
        user(f"part {number}. " + "It does what it says. " * 10, uuid=f"u{number}", ts=number)
        for number in range(30)
    ]
    write_session(config_home.project(), SESSION, said)
    child = Path(document("handoff", SESSION, "--size", size)["data"]["file"])
    _, _, opened, _, card = (json.loads(line) for line in child.read_text().splitlines()[:5])
    told = re.search(r"\((\d+) messages? of \d+ left out\)", opened["message"]["content"])
    text = card["message"]["content"][0]["text"]
    assert bool(told) == is_cut
    left = int(told[1]) if told else 0
    left_out = f" ({left} left out)" if left else ""
    assert f"Loaded: {30 - left} messages{left_out}. All" in text


def test_the_card_names_the_lists_in_the_opening(
    config_home: ConfigHome, document: Document
) -> None:
    """A child's card names the lists in the opening: in this test, the lists of commands and failures."""
    talk = Talk().prompt("run the tests").runs_and_fails("make test").runs("make lint")
    talk.says("One test fails.").write(config_home)
    child = Path(document("handoff", SESSION)["data"]["file"])
    assert "Loaded: 2 messages, lists of commands and failures. All" in child.read_text()


def test_every_reference_in_an_opening_can_be_read(document: Document, parent: Path) -> None:
    """``read`` accepts every reference in an opening."""
    opened = json.loads(
        Path(document("handoff", SESSION)["data"]["file"])
        .read_bytes()
        .splitlines()[OPENING_RECORD_LINE_NUMBER]
    )
    told = opened["message"]["content"].partition("[/SESSION LINEAGE]")[2]
    numbers = re.findall(r"(?:[A-Z] |\(|, )(:@?\d+)\b", told)
    assert any(f"CALL {number}\n" in told for number in numbers)
    assert len(numbers) > 4
    for number in numbers:
        assert document("read", f"{SESSION[:8]}{number}")["data"]
    (whole,) = re.findall(r"all of it: resume-hooks read (\S+)\)", told)
    assert "digest" in document("read", whole)["data"]["text"]


@pytest.mark.parametrize("extra_options", [["-n", "go on"], ["--print"], ["--new-task", "x"]])
def test_handoff_of_size_all_takes_no_next_step(
    document: Document, parent: Path, extra_options: list[str]
) -> None:
    """``handoff --size all`` fails if a next step is given, because the copy has no opening to put it in."""
    before = sorted(parent.parent.iterdir())
    error = document("handoff", SESSION, "--size", "all", *extra_options, code=2)["error"]
    assert "which has no opening" in error["message"]
    assert sorted(parent.parent.iterdir()) == before


def test_handoff_of_size_all_prints_the_usual_json_document(
    document: Document, parent: Path
) -> None:
    """``handoff --size all`` prints the usual JSON document and writes no other file."""
    data = document("handoff", SESSION, "--size", "all")["data"]
    assert Path(data["file"]) in parent.parent.iterdir()
    assert data["documents"] == []


@pytest.mark.parametrize("size", ["0k", "49k", "4", "4kb", "big"])
def test_handoff_refuses_an_invalid_size(document: Document, parent: Path, size: str) -> None:
    """``handoff`` refuses an invalid size, names the valid sizes, and writes nothing."""
    before = sorted(parent.parent.iterdir())
    error = document("handoff", SESSION, "--size", size, code=2)["error"]
    assert "Give a size from 1k to 48k, such as 4k or 24k, or all." in error["remedy"]
    assert sorted(parent.parent.iterdir()) == before


def test_a_child_contains_no_secret_from_a_tool_result(
    document: Document, config_home: ConfigHome
) -> None:
    """A secret in a tool result is redacted in the child, even where a message repeats the secret."""
    value = "Xk29vLq8Zp3w"
    rows = [
        *conversation(2),
        tool_use(
            "t1", uuid="c1", parent="r3", ts=10, name="Bash", tool_input={"command": "cat .env"}
        ),
        tool_result("t1", f"DB_PASSWORD={value}", uuid="c2", parent="c1", ts=11),
        user(f"go on with {value} in the second file", uuid="c3", parent="c2", ts=12),
        assistant(f"I went on with {value} there.", uuid="c4", parent="c3", ts=13),
    ]
    write_session(config_home.project(), SESSION, rows)
    child = document("handoff", SESSION)["data"]
    assert value not in Path(child["file"]).read_text(encoding="utf-8")
