"""Tests that the digest of a child contains the relevant entries of each ancestor once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import DIGEST_LINE_NUMBER, ChildContents
from resume_hooks.hooks import session
from resume_hooks.hooks.pending_handoff import PendingHandoff
from resume_hooks.reading.digest import build
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest, MessageKind
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import FORMER_REPORT_HEADING, REPORT_HEADING
from resume_hooks.transcripts.records import parse_record
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    Record,
    result,
    session_bytes,
    session_id,
    user,
    write_session,
)
from tests.reading.digest.talk import (
    Talk,
    entry_line_numbers,
    entry_notes,
    entry_texts,
    message_texts,
    request_line_numbers,
    request_texts,
)

CHILD_ID = session_id(2)
CARD_LINE_NUMBER = DIGEST_LINE_NUMBER + 1


def metadata_record(kind: str, parent: Path, parent_id: str = SESSION) -> Record:
    """Return the metadata record on the first line of a child."""
    said = {
        "parent_session_id": parent_id, "parent_session_file": str(parent), "parent_file": str(parent),
        "continued_at": "2026-02-01T00:00:00.000Z", "continuation_type": kind, "summary_included": False,
    }  # fmt: skip
    return {"continue_metadata": said}


def write_handoff_of(talk: Talk, home: ConfigHome, step: str = "") -> str:
    """Write a handoff of a session and return the handoff's path."""
    path = session_file(str(talk.write(home)))
    return _write_child(path.path, build_digest(path, home.where), home, step)


def _write_child(path: str, digest: Digest, home: ConfigHome, step: str) -> str:
    plan = agents.plan_fresh_child(
        session_file(path),
        home.where,
        kind="handoff",
        next_step=step,
        contents=ChildContents(digest),
    )
    return write_child(plan, home.where).file


def continue_child(child: str, talk: Talk) -> str:
    """Append a talk's records to a child and return the child's path.

    The first of these records follows the child's card.
    """
    talk.records[0]["parentUuid"] = (
        parse_record(Path(child).read_bytes().split(b"\n")[CARD_LINE_NUMBER]) or {}
    )["uuid"]
    with open(child, "ab") as stream:
        stream.write(session_bytes(talk.records))
    return child


def digest_of_file(path: str | Path, home: ConfigHome) -> Digest:
    """Return the digest of the session in a file."""
    return build_digest(session_file(str(path)), home.where)


def talk_with_every_section() -> Talk:
    """Return a session with an entry for every section of a digest."""
    talk = (
        Talk()
        .prompt("always use spaces")
        .says("We decided on spaces instead of tabs.")
        .edits(f"{CWD}/a.py")
    )
    talk.calls("TodoWrite", {"todos": [{"content": "write docs", "status": "pending"}]}).runs(
        "go vet ./..."
    )
    return talk.runs_and_fails("go test ./...").says("Half of it is done. Shall I go on?")


def test_a_digest_of_a_child_contains_the_parents_entries(config_home: ConfigHome) -> None:
    """The digest of a child contains the parent's entries, even if the parent's file was deleted."""
    child = write_handoff_of(talk_with_every_section(), config_home, "finish the docs")
    (config_home.project() / f"{SESSION}.jsonl").unlink()
    found = digest_of_file(child, config_home)
    assert request_texts(found) == ["always use spaces", "finish the docs"]
    assert entry_texts(found, "constraints") == ["always use spaces"]
    assert entry_texts(found, "changed") == ["a.py"]
    assert entry_notes(found, "commands") == {"go vet ./...": ""}
    assert entry_texts(found, "todos") == ["write docs"]
    assert message_texts(found, MessageKind.CLOSING)[-1] == "Half of it is done. Shall I go on?"
    assert entry_texts(found, "failures") == ["`go test ./...` exit 1: boom"]


def test_a_continued_child_updates_open_entries(config_home: ConfigHome) -> None:
    """The digest of a continued child shows the child's own questions, errors, todos and last message.

    A command that succeeded in the parent and then failed in the child has the note "failed since".
    """
    child = write_handoff_of(talk_with_every_section(), config_home, "finish")
    more = (
        Talk(Path(child).stem, "c")
        .prompt("yes, all of it")
        .runs("go test ./...")
        .runs_and_fails("go vet ./...")
    )
    more.calls("TodoWrite", {"todos": []}).says("All of it is done now, with docs.")
    found = digest_of_file(continue_child(child, more), config_home)
    assert request_texts(found) == ["always use spaces", "finish", "yes, all of it"]
    assert entry_texts(found, "questions") == []
    assert entry_texts(found, "todos") == []
    assert message_texts(found, MessageKind.CLOSING)[-1] == "All of it is done now, with docs."
    assert entry_notes(found, "commands") == {"go test ./...": "", "go vet ./...": "failed since"}
    assert [text for text in entry_texts(found, "errors") if "go test" in text] == []


def test_repeated_handoffs_repeat_no_message(config_home: ConfigHome) -> None:
    """After twelve handoffs, the digest contains each message once.

    Its first message still refers to the first session.
    """
    path = write_handoff_of(talk_with_every_section(), config_home, "step 0")
    for number in range(1, 12):
        talk = (
            Talk(Path(path).stem, f"g{number}-")
            .prompt(f"prompt {number}")
            .edits(f"{CWD}/f{number}.py")
        )
        continue_child(path, talk.says(f"Generation {number} is finished as planned."))
        path = _write_child(path, digest_of_file(path, config_home), config_home, f"step {number}")
    found = digest_of_file(path, config_home)
    asked = request_texts(found)
    assert asked[:3] == ["always use spaces", "step 0", "prompt 1"]
    assert asked[-2:] == ["prompt 11", "step 11"]
    assert len(asked) == len(set(asked)) == 24
    assert found.talk[0].ref == f"{SESSION}:0"
    assert len(found.section_entries("changed")) == 12


def copied_records(
    talk: Talk, path: Path, kind: str, edit: Callable[[Record], Record] | None = None
) -> list[Record]:
    """Return the records of a child that copies a session. ``edit`` changes each copied record."""
    copied = [{**record, "sessionId": CHILD_ID} for record in talk.records]
    return [metadata_record(kind, path), *(edit(record) if edit else record for record in copied)]


def test_the_digest_of_a_trimmed_child_uses_the_originals(config_home: ConfigHome) -> None:
    """The digest of a trimmed child quotes the parent's original content and refers to the parent."""
    talk = talk_with_every_section()
    path = talk.write(config_home)
    left = "[Results from Bash tool suppressed - original content was 9,000 characters; original: 11111111:8]"

    def trim_record(record: Record) -> Record:
        content = record["message"]["content"]
        if isinstance(content, list) and content[0].get("type") == "tool_result":
            return {
                **record,
                "message": {**record["message"], "content": [{**content[0], "content": left}]},
            }
        return record

    child = Talk(CHILD_ID, "c")
    child.records = copied_records(talk, path, "trim", trim_record)
    child.continue_from(talk.next_parent_uuid).prompt("next").runs("go vet ./...")
    found = child.digest(config_home)
    assert request_texts(found) == ["always use spaces", "next"]
    assert entry_notes(found, "commands") == {"go vet ./...": "2 runs"}
    assert entry_texts(found, "failures") == ["`go test ./...` exit 1: boom"]
    assert {entry.ref.partition(":")[0] for entry in found.section_entries("failures")} == {SESSION}
    path.unlink()
    assert not any(
        "suppressed" in entry.text
        for rows in child.digest(config_home).sections.values()
        for entry in rows
    )


@pytest.mark.parametrize("has_new_ids", [False, True])
def test_copied_records_of_a_fork_are_counted_once(
    config_home: ConfigHome, has_new_ids: bool
) -> None:
    """A record that a fork copied from its parent counts once, whether it keeps its uuid or not."""
    talk = talk_with_every_section()
    path = talk.write(config_home)

    def fork_record(record: Record) -> Record:
        source = {"sessionId": SESSION, "messageUuid": record["uuid"]}
        above = record["parentUuid"] and f"new-{record['parentUuid']}"
        return {
            **record,
            "uuid": f"new-{record['uuid']}",
            "parentUuid": above,
            "forkedFrom": source,
        }

    child = Talk(CHILD_ID, "c")
    child.records = copied_records(talk, path, "fork", fork_record if has_new_ids else None)
    child.continue_from(
        f"new-{talk.next_parent_uuid}" if has_new_ids else talk.next_parent_uuid
    ).prompt("another way").runs("go vet ./...")
    found = child.digest(config_home)
    assert request_texts(found) == ["always use spaces", "another way"]
    assert entry_notes(found, "commands") == {"go vet ./...": "2 runs"}
    assert entry_line_numbers(found, "changed") == {"a.py": 2}


@pytest.mark.parametrize("is_outdated", [False, True])
def test_a_session_after_clear_includes_its_history(
    config_home: ConfigHome, is_outdated: bool
) -> None:
    """The digest of a session after ``/clear`` includes the cleared session's entries.

    If a handoff of the cleared session was used, its next step is listed as a request.
    """
    talk_with_every_section().write(config_home)
    record_link(Link(CHILD_ID, SESSION, "clear", "2026-02-01T00:00:00.000Z"), config_home.where)
    left = "[SESSION LINEAGE]\n1. x\n[/SESSION LINEAGE]\n\nNext step, as the user put it:\nwrite the docs"
    handoff = PendingHandoff(1, "", SESSION, session_id(3), "/handed/off.jsonl", 1, 0.0, left)
    told = session._opening_after_clear(handoff, CHILD_ID, "/here.jsonl", is_outdated=is_outdated)
    attached = {
        "type": "attachment",
        "uuid": "c0",
        "parentUuid": None,
        "timestamp": "2026-02-01T00:00:00.000Z",
    }
    talk = Talk(CHILD_ID, "c").add(
        {**attached, "attachment": {"type": "hook_additional_context", "content": [told]}}
    )
    found = talk.says("Writing them all now.").digest(config_home)
    assert request_texts(found) == ["always use spaces", "write the docs"]
    assert entry_texts(found, "changed") == ["a.py"]


@pytest.mark.parametrize("report", ["", REPORT_HEADING, FORMER_REPORT_HEADING])
def test_later_messages_of_the_parent_are_not_in_a_childs_digest(
    config_home: ConfigHome, report: str
) -> None:
    """The digest of a child leaves out messages that the parent received after the child was made.

    Files that the parent changed later are listed nevertheless, because they did change.
    """
    talk = Talk().prompt("go").says("ok")
    copied = list(talk.records)
    path = (
        talk.prompt("use tabs, always")
        .says("We decided on tabs instead.")
        .edits(f"{CWD}/t.py")
        .write(config_home)
    )
    told = f"[SESSION LINEAGE]\n1. x\n[/SESSION LINEAGE]\n\nwhere\n\n{report}\ndon't use tabs"
    child = Talk(CHILD_ID, "c")
    child.records = [metadata_record("back" if report else "fork", path), *copied]
    child.continue_from("r1").prompt(
        told if report else "don't use tabs", isVisibleInTranscriptOnly=bool(report)
    )
    found = child.digest(config_home)
    assert request_texts(found) == ["go", "don't use tabs"]
    assert entry_texts(found, "constraints") == ["don't use tabs"]
    assert not any("tabs instead" in message.text for message in found.talk)
    assert entry_texts(found, "changed") == ["t.py"]


def test_a_task_number_does_not_refer_to_a_task_of_the_parent(config_home: ConfigHome) -> None:
    """If a new child creates a task 1, an update of task 1 changes the child's task, not the parent's."""
    talk = Talk().prompt("go").calls("TaskCreate", {"subject": "old"}, "Task #1 created")
    path = talk.write(config_home)
    child = Talk(CHILD_ID, "c").add(metadata_record("rollover", path)).prompt("on")
    child.calls("TaskCreate", {"subject": "new"}, "Task #1 created").calls(
        "TaskUpdate", {"taskId": "1", "status": "completed"}
    )
    assert entry_texts(child.digest(config_home), "todos") == ["old"]


def test_a_cyclic_lineage_is_read_once(config_home: ConfigHome) -> None:
    """A lineage in which two sessions are each other's parent is read once, without an endless loop."""
    first = (
        Talk(SESSION, "a")
        .add(metadata_record("fork", config_home.project() / f"{CHILD_ID}.jsonl", CHILD_ID))
        .prompt("one")
    )
    first.write(config_home)
    second = (
        Talk(CHILD_ID, "b")
        .add(metadata_record("fork", config_home.project() / f"{SESSION}.jsonl"))
        .prompt("two")
    )
    assert request_texts(second.digest(config_home)) == ["one", "two"]
    (config_home.project() / f"{SESSION}.jsonl").unlink()
    assert request_texts(second.digest(config_home)) == ["two"]


def test_hundreds_of_ancestors_are_read(config_home: ConfigHome) -> None:
    """The digest of a session with 199 ancestors contains all their prompts, oldest first."""
    path = Talk(session_id(1000), "g0-").prompt("prompt 0").write(config_home)
    for number in range(1, 200):
        talk = Talk(session_id(1000 + number), f"g{number}-").add(
            metadata_record("fork", path, path.stem)
        )
        path = talk.prompt(f"prompt {number}").write(config_home)
    assert request_texts(digest_of_file(path, config_home)) == [
        f"prompt {number}" for number in range(200)
    ]


def test_ancestors_beyond_the_budget_are_counted(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the nearest ancestors within the size limit are read. The others are counted as unread."""
    monkeypatch.setattr(build, "MAX_ANCESTOR_BYTES", 5_000)
    path = Talk(session_id(1), "g1-").prompt("one " * 2_000).write(config_home)
    for number in (2, 3):
        talk = Talk(session_id(number), f"g{number}-").add(metadata_record("fork", path, path.stem))
        path = talk.prompt(f"prompt {number}").write(config_home)
    found = digest_of_file(path, config_home)
    assert request_texts(found) == ["prompt 2", "prompt 3"]
    assert found.unread_transcript_count == 1


def write_partially_read_file(
    path: Path, rows: Sequence[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write a file that is so large that only its start and its end are read."""
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    monkeypatch.setattr(build, "MAX_READ_BYTES", 30_000)
    monkeypatch.setattr(build, "SESSION_START_BYTES", 5_000)


@pytest.mark.parametrize("filler_bytes", [1, 97, 5_000, 40_000])
def test_both_ends_of_a_very_large_file_are_read(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, filler_bytes: int
) -> None:
    """The start and the end of a very large file are read, and the skipped bytes are counted.

    The entries from the file's end have the right line numbers.
    """
    path = config_home.project() / f"{SESSION}.jsonl"
    rows = [session_bytes([Talk().prompt("first").records[0]]).strip()]
    rows += [
        b'{"type":"x","pad":"' + b"y" * filler_bytes + b'"}'
        for _ in range(120_000 // (filler_bytes + 22) + 1)
    ]
    talk = Talk()
    talk.records = [{}] * len(rows)
    talk.prompt("last").runs("make it").says("All of it is finished.")
    rows += session_bytes(talk.records[-4:]).splitlines()
    write_partially_read_file(path, rows, monkeypatch)
    found = digest_of_file(path, config_home)
    assert request_line_numbers(found) == {"first": 0, "last": len(rows) - 4}
    assert entry_line_numbers(found, "commands") == {"make it": len(rows) - 3}
    size = os.path.getsize(path)
    assert found.skipped_bytes == size - build.MAX_READ_BYTES - build.SESSION_START_BYTES


def test_files_changed_by_sub_agents_are_listed(config_home: ConfigHome) -> None:
    """Files that sub-agents changed are listed and refer to the sub-agents' own transcripts."""
    talk = (
        Talk().prompt("go").calls("Task", {"prompt": "do"}, "done", toolUseResult={"agentId": "a1"})
    )
    path = talk.edits(f"{CWD}/main.py").write(config_home)
    agent = (
        Talk(SESSION, "s")
        .prompt("do")
        .edits(f"{CWD}/sub.py")
        .runs("touch made.txt")
        .runs_and_fails("touch not.txt")
    )
    for record in agent.records:
        record["isSidechain"] = True
    folder = path.parent / SESSION / "subagents"
    write_session(folder, "agent-a1", agent.records)
    write_session(folder, "agent-zz", [b"\xff", b"{}"])
    found = digest_of_file(path, config_home)
    assert entry_texts(found, "changed") == ["main.py", "made.txt", "sub.py"]
    assert {entry.text: entry.ref for entry in found.section_entries("changed")} == {
        "main.py": f"{SESSION}:3", "sub.py": f"{SESSION}/agent-a1:1", "made.txt": f"{SESSION}/agent-a1:3",
    }  # fmt: skip
    assert entry_texts(found, "commands") == []


def test_sub_agents_beyond_the_budget_are_counted(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sub-agent's transcript that exceeds the size limit is not read but counted as unread."""
    monkeypatch.setattr(build, "MAX_SUBAGENT_BYTES", 5_000)
    path = Talk().prompt("go").edits(f"{CWD}/main.py").write(config_home)
    agent = Talk(SESSION, "s").prompt("do " * 2_000).edits(f"{CWD}/sub.py")
    write_session(path.parent / SESSION / "subagents", "agent-a1", agent.records)
    found = digest_of_file(path, config_home)
    assert entry_texts(found, "changed") == ["main.py"]
    assert found.unread_transcript_count == 1


def test_a_sub_agent_in_both_folders_belongs_to_the_parent(
    config_home: ConfigHome,
) -> None:
    """If a child and its parent have the same sub-agent's transcript, the sub-agent belongs to the parent."""
    talk = Talk().prompt("go")
    path = talk.write(config_home)
    agent = Talk(SESSION, "s").edits(f"{CWD}/sub.py")
    for owner in (SESSION, CHILD_ID):
        folder = path.parent / owner / "subagents"
        write_session(
            folder, "agent-a1", [{**record, "isSidechain": True} for record in agent.records]
        )
    child = Talk(CHILD_ID, "c")
    child.records = copied_records(talk, path, "trim")
    (found,) = (
        child.continue_from(talk.next_parent_uuid)
        .prompt("on")
        .digest(config_home)
        .section_entries("changed")
    )
    assert (found.text, found.ref, found.note) == ("sub.py", f"{SESSION}/agent-a1:0", "")


def test_omitted_entries_of_the_parent_are_still_counted(config_home: ConfigHome) -> None:
    """Files that the parent's digest counted without listing are also counted in the child's digest."""
    talk = Talk().prompt("go")
    for number in range(900):
        talk.edits(f"{CWD}/some/longer/folder/file-number-{number}.py")
    path = session_file(str(talk.write(config_home)))
    before = build_digest(path, config_home.where)
    left = before.omitted_counts["changed"]
    assert len(before.section_entries("changed")) + left == 900
    child = _write_child(path.path, before, config_home, "on")
    (config_home.project() / f"{SESSION}.jsonl").unlink()
    found = digest_of_file(child, config_home)
    assert len(found.section_entries("changed")) + found.omitted_counts["changed"] == 900


def test_a_sub_agent_next_to_its_session_is_read(config_home: ConfigHome) -> None:
    """A sub-agent's transcript next to the session's file is read. Clients before 2.1 stored it there.

    A sub-agent's id that is a path is ignored.
    """
    talk = Talk().prompt("go")
    for agent_id in ("a1", "../a1", "x/../../a1"):
        talk.calls("Task", {"prompt": "do"}, "done", toolUseResult={"agentId": agent_id})
    path = talk.write(config_home)
    agent = Talk(SESSION, "s").edits(f"{CWD}/sub.py")
    write_session(
        path.parent, "agent-a1", [{**record, "isSidechain": True} for record in agent.records]
    )
    assert entry_texts(digest_of_file(path, config_home), "changed") == ["sub.py"]


def test_sidechains_within_a_session_are_not_part_of_its_talk(config_home: ConfigHome) -> None:
    """The messages of a sub-agent in the session's own file are not part of the talk.

    Clients of version 1 kept them in that file.
    """
    talk = Talk().prompt("go").prompt("never do that", isSidechain=True).says("ok")
    assert request_texts(talk.digest(config_home)) == ["go"]


def test_files_changed_by_sub_agents_in_the_sessions_file_are_listed(
    config_home: ConfigHome,
) -> None:
    """Files that sub-agents changed are found in the session's own file. Removed files are not listed.

    Clients of version 1 stored the sub-agents' records in that file.
    """
    talk = Talk().prompt("go").calls("Task", {"prompt": "build it"}, None)
    agent = Talk(SESSION, "s").prompt("build it").edits(f"{CWD}/sub.py").runs("echo x > made.txt")
    agent.edits(f"{CWD}/gone.py").edits(f"{CWD}/old/a.py").runs("rm gone.py && rm -r old")
    agent.edits(f"{CWD}/no.py", answer="no such file", error=True).says("built")
    for record in agent.records:
        talk.records.append({**record, "isSidechain": True})
    task = talk.records[1]["message"]["content"][0]
    talk.add(user([result(task["id"], "built")], uuid="done", parent=talk.next_parent_uuid))
    found = talk.edits(f"{CWD}/main.py").digest(config_home)
    assert entry_line_numbers(found, "changed") == {
        "main.py": talk.last_line_number - 1,
        "made.txt": 5,
        "sub.py": 3,
    }
    now = entry_texts(found, "now")
    assert "no git command ran; changed: main.py, made.txt, sub.py" in now
    assert not any("sub-agents also worked" in row for row in now)
