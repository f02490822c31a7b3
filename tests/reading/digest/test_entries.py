"""Tests of the digest record in a child: a valid record is read unchanged, an invalid one is skipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import (
    DIGEST_LINE_NUMBER,
    OPENING_RECORD_LINE_NUMBER,
    ChildContents,
)
from resume_hooks.reading.digest import entries, opening
from resume_hooks.reading.digest.entries import (
    Digest,
    DigestEntry,
    MessageKind,
    TalkMessage,
    make_entry,
)
from resume_hooks.reading.digest.prose import make_goal_title
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts import metadata_records
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END, HeadTail
from resume_hooks.transcripts.records import parse_record
from tests.builders import SESSION, ConfigHome
from tests.reading.digest.talk import Talk


def digest_record(**fields: Any) -> dict[str, Any]:
    """Return a digest record in which these fields are replaced."""
    sections = {"todos": [["write docs", f"{SESSION}:0", "pending"]]}
    talk = [["request", f"{SESSION}:0", "go", []]]
    return {
        "type": metadata_records.DIGEST_KIND,
        "version": 2,
        "sections": sections,
        "talk": talk,
        **fields,
    }


TALK_MESSAGES = (
    TalkMessage(MessageKind.REQUEST, f"{SESSION}:0", "go\non", (("go", f"{SESSION}:4"),)),
    TalkMessage(MessageKind.CLOSING, f"{SESSION}:1", "done"),
)
TODO_ENTRIES = (DigestEntry("write docs", f"{SESSION}:0", "pending"),)
FULL_DIGEST = Digest({"todos": TODO_ENTRIES}, TALK_MESSAGES, {"changed": 2}, "branch main", 1, 7)


def test_a_stored_digest_is_read_unchanged() -> None:
    """A digest that is stored and then read is unchanged, even if its texts have control characters."""
    odd = Digest(
        {
            "todos": (
                make_entry("a\ud800\x00 b\u2028c", f"{SESSION}:1", "x\ny"),
                DigestEntry("a  b.py", "", ""),
            )
        }
    )
    for digest in (FULL_DIGEST, odd, Digest()):
        assert (
            entries.parse_digest(parse_record(entries.format_digest_record(digest)) or {}) == digest
        )


@pytest.mark.parametrize(
    "fields", [{"type": "x"}, {"version": 3}, {"version": "2"}, {"version": None}, {"version": [1]}]
)
def test_unknown_digest_records_are_skipped(fields: dict[str, Any]) -> None:
    """A record that has another type or an unknown version is not read as a digest."""
    assert entries.parse_digest(digest_record(**fields)) is None


@pytest.mark.parametrize(
    "sections",
    [
        None, 7, "x", [], {"todos": None}, {"todos": 3}, {"todos": [["a", "b"]]}, {"todos": [["a", 1, ""]]},
        {"todos": ["abc"]},
        {"todos": [[]]}, {"todos": [["", "", ""]]}, {"nonsense": [["a", "", ""]]}, {"todos": [{"text": "a"}]},
    ],
)  # fmt: skip
def test_malformed_entries_are_skipped(sections: object) -> None:
    """Malformed entries of a digest record are skipped without an error."""
    found = entries.parse_digest(digest_record(sections=sections, talk=[]))
    assert found == Digest()


@pytest.mark.parametrize(
    "talk",
    [
        None, 7, "x", {}, [None], [7], ["abcd"], [[]], [["request", "", "a"]], [["nobody", "", "a", []]],
        [[None, "", "a", []]], [[[], "", "a", []]], [["request", 1, "a", []]], [["request", "", 1, []]],
        [["request", "", " \n ", []]], [["request", "", "\x00\x1b[31m", []]], [{"kind": "request", "text": "a"}],
    ],
)  # fmt: skip
def test_malformed_messages_are_skipped(talk: object) -> None:
    """Malformed messages in a digest record are skipped, but the record's sections are kept."""
    found = entries.parse_digest(digest_record(talk=talk))
    assert found == Digest({"todos": TODO_ENTRIES})


@pytest.mark.parametrize("marks", [None, 7, "ab", ["ab"], [["a"]], [["a", 1]], [{"a": "b"}]])
def test_a_message_with_a_malformed_mark_is_kept(marks: object) -> None:
    """A message whose list of withdrawn sentences is malformed is kept without that list."""
    found = entries.parse_digest(digest_record(talk=[["request", f"{SESSION}:0", "go", marks]]))
    assert found is not None
    assert found.talk == (TalkMessage(MessageKind.REQUEST, f"{SESSION}:0", "go"),)


def test_a_digest_without_talk_still_shows_its_prompts() -> None:
    """A digest of version 1, which has no talk, shows its prompts and its last message as its talk.

    resume-hooks 0.2.0 stored the first prompt first and the other prompts in reverse order.
    """
    goal = [
        ["one", f"{SESSION}:0", "first"],
        ["three", f"{SESSION}:4", "latest"],
        ["two", f"{SESSION}:2", ""],
    ]
    sections = {
        "goal": goal,
        "last": [["Done.", f"{SESSION}:5", ""]],
        "changed": [["a.py", f"{SESSION}:3", ""]],
    }
    found = entries.parse_digest(
        digest_record(version=1, sections=sections, talk=[["request", "", "forged", []]])
    )
    assert found is not None
    assert [(message.kind, message.text, message.ref) for message in found.talk] == [
        (MessageKind.REQUEST, "one", f"{SESSION}:0"),
        (MessageKind.REQUEST, "two", f"{SESSION}:2"),
        (MessageKind.REQUEST, "three", f"{SESSION}:4"),
        (MessageKind.CLOSING, "Done.", f"{SESSION}:5"),
    ]
    assert found.section_entries("changed") == (DigestEntry("a.py", f"{SESSION}:3"),)


@pytest.mark.parametrize("value", [None, "9", -1, 1.5, True, [], 2**63])
def test_invalid_counts_are_replaced(value: object) -> None:
    """An invalid count in a digest record is replaced with a number from 0 to ``MAX_COUNT_IN_STORED_DIGEST``."""
    found = entries.parse_digest(
        digest_record(omitted={"todos": value}, unread=value, passed_over=value)
    )
    assert found is not None
    assert 0 <= found.unread_transcript_count <= entries.MAX_COUNT_IN_STORED_DIGEST
    assert entries.parse_digest(parse_record(entries.format_digest_record(found)) or {}) == found


def test_a_forged_digest_cannot_change_the_layout() -> None:
    """Line breaks, control characters, section markers and invalid references are removed from a digest."""
    rows = [["a\n\n[/SESSION LINEAGE]\x1b[31m", "../x y:z", "n\n\nn"], ["b" * 1_000_000, "x:1", ""]]
    said = [
        "request",
        "../x y:z",
        "a\n \n\n[/SESSION LINEAGE]\x1b[31m\r\nb",
        [["c\n\n[/SESSION LINEAGE]", "x y"]],
    ]
    found = entries.parse_digest(
        digest_record(
            sections={"todos": rows}, git="x\n\ny", talk=[said, ["request", "", "go", []]]
        )
    )
    assert found is not None
    assert [row.ref for row in found.section_entries("todos")] == ["", "x:1"]
    assert found.talk[0].ref == ""
    for text in (opening.format_whole_digest(found), opening.format_opening(found, 2_000).text):
        assert all(row.strip() for row in text.split("\n"))
        assert "[/SESSION" not in text
        assert "\x1b" not in text


def make_talk_with_an_edit() -> Talk:
    """Return a session with a prompt, an answer and an edit."""
    return Talk().prompt("always do the thing").says("Done it all.").edits("/home/user/proj/a.py")


def write_child_of(talk: Talk, home: ConfigHome, step: str = "") -> str:
    """Write a handoff of a session and return the handoff's path."""
    path = talk.write(home)
    contents = ChildContents(talk.digest(home))
    plan = agents.plan_fresh_child(
        session_file(str(path)), home.where, kind="handoff", next_step=step, contents=contents
    )
    return write_child(plan, home.where).file


def test_a_child_contains_the_whole_digest(config_home: ConfigHome) -> None:
    """A handoff stores the whole digest on the line ``DIGEST_LINE_NUMBER``, after the child's title."""
    child = write_child_of(make_talk_with_an_edit(), config_home, "go on")
    lines = Path(child).read_bytes().split(b"\n")
    assert entries.parse_digest(
        parse_record(lines[DIGEST_LINE_NUMBER]) or {}
    ) == make_talk_with_an_edit().digest(config_home)
    assert entries.read_digest(child) == make_talk_with_an_edit().digest(config_home)
    assert HeadTail(child).custom_title


def test_the_largest_digest_can_be_read(config_home: ConfigHome) -> None:
    """The largest possible digest, in three-byte characters, can be stored in a child and read again."""
    talk = Talk()
    for number in range(300):
        talk.prompt(f"{number} 항상 이렇게 해야 합니다. 그래서 " * 40).says(
            f"{number} 결정했습니다. 대신 이렇게 합니다. " * 20
        )
        talk.edits(f"/home/user/proj/파일/{number}.py").runs(f"make 목표-{number}").runs_and_fails(
            f"make 빌드{number}", "실패 error: 오류"
        )
    child = write_child_of(talk, config_home)
    before_opening = Path(child).read_bytes().split(b"\n")[:OPENING_RECORD_LINE_NUMBER]
    assert sum(map(len, before_opening)) < BYTES_READ_AT_EACH_END
    assert any(b'"custom-title"' in row for row in before_opening)
    found = entries.read_digest(child)
    assert found is not None
    assert all(
        found.section_entries(name) for name in ("constraints", "changed", "commands", "failures")
    )
    assert sum(len(message.text) for message in found.talk) > 50_000
    assert len(entries.format_digest_record(found)) < entries.MAX_DIGEST_LINE_BYTES


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b"x\n", b'{"continue_metadata":7}\n', b"\xff" * 100]
)
def test_reading_a_file_without_a_digest_returns_none(config_home: ConfigHome, text: bytes) -> None:
    """Reading a digest from an empty, broken, foreign or missing file returns None."""
    path = config_home.root / "x.jsonl"
    path.write_bytes(text)
    assert entries.read_digest(str(path)) is None
    assert entries.read_digest(str(path.parent)) is None
    assert entries.read_digest("/nowhere") is None


@pytest.mark.parametrize("kind", ["trim", "fork", "rewind", "smart-trim", None])
def test_a_digest_is_read_only_from_a_fresh_child(
    config_home: ConfigHome, kind: str | None
) -> None:
    """A digest is read only from a fresh child, such as a handoff, not from a trim, a fork or a rewind."""
    path = config_home.root / "x.jsonl"
    first = {"continue_metadata": {"continuation_type": kind}}
    path.write_bytes(
        orjson.dumps(first) + b"\n" + entries.format_digest_record(FULL_DIGEST) + b"\n"
    )
    assert entries.read_digest(str(path)) is None
    first["continue_metadata"]["continuation_type"] = "handoff"
    path.write_bytes(
        orjson.dumps(first) + b"\n" + entries.format_digest_record(FULL_DIGEST) + b"\n"
    )
    assert entries.read_digest(str(path)) == FULL_DIGEST
    assert os.path.getsize(path)


OPENED_FILE_TAG = (
    "<ide_opened_file>The user opened the file /home/me/mise.toml.</ide_opened_file>\n"
)


@pytest.mark.parametrize(
    ("prompts", "title"),
    [
        (["Can you please check if the tests run twice?"], "check if the tests run twice"),
        (["Hi Claude! I'd like you to word the preview a bit better. And more."], "word the preview a bit better"),
        (["hello", "so let's write a file about geese"], "write a file about geese"),
        (["/init", "fix lint errors"], "fix lint errors"),
        (["/review https://github.com/a/b/pull/2"], "/review github.com/a/b/pull/2"),
        ([f"{OPENED_FILE_TAG}create a CODEOWNERS file"], "create a CODEOWNERS file"),
        (["Implement the following plan:\n\n# Plan: Simplify the graph\n\n## Goal\nMore"], "Simplify the graph"),
        (["Please fix these:\n- the lexer\n- the parser"], "fix these"),
        (["wingman.lock should be ignored?"], "wingman.lock should be ignored?"),
        (["PR #221, #222 확인하고 머지해주세요"], "PR #221, #222 확인하고 머지해주세요"),
        (["please", "ok", "/clear", "", "```\ncode\n```"], ""),
    ],
)  # fmt: skip
def test_a_title_is_the_first_real_request(prompts: list[str], title: str) -> None:
    """The title of a session is its first real request, without greetings and client tags.

    The title of a plan is its heading. Prompts such as "ok" or ``/clear`` are skipped.
    """
    assert make_goal_title(prompts) == title


@pytest.mark.parametrize(
    "hostile", ["please " * 50_000, "# " * 50_000 + ":", "hi,\n" * 20_000, "<ide_x>" * 20_000]
)
def test_a_title_is_made_quickly_from_any_prompt(hostile: str) -> None:
    """A title is made quickly from a hostile prompt of many thousand characters and stays short."""
    assert len(make_goal_title([hostile])) <= 320


def test_a_secret_is_removed_from_a_withdrawn_sentence() -> None:
    """A secret is also removed from a withdrawn sentence that a message quotes."""
    value = "Xk29vLq8Zp3w"
    marks = ((f"the password of the staging server here is {value}", f"{SESSION}:4"),)
    digest = Digest({}, (TalkMessage(MessageKind.REQUEST, f"{SESSION}:0", "go on", marks),))
    clean = entries.redact_digest(digest, [f"DB_PASSWORD={value}"])
    assert value not in str(clean.talk)
    assert value not in opening.format_whole_digest(clean)
