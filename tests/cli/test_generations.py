"""Tests of handoffs made from the children of handoffs, and of handoffs with a large opening."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import (
    DIGEST_LINE_NUMBER,
    OPENING_RECORD_LINE_NUMBER,
    TITLE_LINE_NUMBER,
    ChildContents,
    read_opening,
)
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest, MessageKind
from resume_hooks.reading.digest.opening import convert_tokens_to_characters, format_opening
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.session import Session
from resume_hooks.transcripts import metadata_records
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END, HeadTail
from resume_hooks.transcripts.records import parse_record
from tests.builders import CLIENT_VERSION, CWD, SESSION, ConfigHome, session_bytes
from tests.cli.conftest import Document
from tests.reading.digest.talk import Talk, entry_texts, request_texts

CARD_LINE = DIGEST_LINE_NUMBER + 1
GENERATION_COUNT = 5
FIRST_PROMPTS = [
    "Always keep the public names.",
    "The port is 8080 for the server.",
    "Use\nthe parser: `lex`, then parse",
    "and then? [/SESSION LINEAGE]",
    "Next step, as the user put it:",
]


def digest_of_file(path: str | Path, home: ConfigHome) -> Digest:
    """Return the digest of a session's file."""
    return build_digest(session_file(str(path)), home.where)


def continue_child(child: str, talk: Talk) -> None:
    """Append records to a child, as a client does, starting after the child's card."""
    for record in talk.records:
        record["timestamp"] = f"2999{record['timestamp'][4:]}"
    talk.records[0]["parentUuid"] = (
        parse_record(Path(child).read_bytes().split(b"\n")[CARD_LINE]) or {}
    )["uuid"]
    with open(child, "ab") as stream:
        stream.write(session_bytes(talk.records))


@pytest.fixture
def fifth_handoff(config_home: ConfigHome, document: Document) -> Path:
    """Return the last of five handoffs, each made from the child of the previous one.

    Each child has a few messages of its own.
    """
    talk = Talk()
    for text in FIRST_PROMPTS:
        talk.prompt(text).says(f"I did as you said: {text}")
    path = str(talk.write(config_home))
    for number in range(GENERATION_COUNT):
        data = document("handoff", Path(path).stem, "-n", f"step {number}")["data"]
        path = data["file"]
        more = Talk(Path(path).stem, f"g{number}-").prompt(f"prompt of generation {number}")
        more.edits(f"{CWD}/f{number}.py").says(f"Generation {number} is done as planned.")
        if number == 2:
            more.prompt("The port is 9090 for the server.").says("It is.")
        continue_child(path, more)
    return Path(path)


def test_a_digest_has_the_prompts_of_all_generations(
    config_home: ConfigHome, fifth_handoff: Path
) -> None:
    """The digest of a fifth handoff contains the prompts of all generations, each once and in order.

    The reference after each prompt of the first session names the session and the prompt's line.
    """
    found = digest_of_file(fifth_handoff, config_home)
    of_first = [message for message in found.talk if message.ref.startswith(SESSION)]
    assert [
        message.text for message in of_first if message.kind is MessageKind.REQUEST
    ] == FIRST_PROMPTS
    assert [message.ref for message in of_first if message.kind is MessageKind.REQUEST] == [
        f"{SESSION}:{2 * number}" for number in range(len(FIRST_PROMPTS))
    ]
    asked = request_texts(found)
    assert len(asked) == len(set(asked))
    assert asked[len(FIRST_PROMPTS) :][:3] == ["step 0", "prompt of generation 0", "step 1"]
    assert asked[-1] == f"prompt of generation {GENERATION_COUNT - 1}"


def test_a_digest_does_not_need_the_ancestors_files(
    config_home: ConfigHome, fifth_handoff: Path
) -> None:
    """The digest of a handoff stays the same after the files of all its ancestors have been deleted."""
    before = request_texts(digest_of_file(fifth_handoff, config_home))
    for path in config_home.project().glob("*.jsonl"):
        if path != fifth_handoff:
            path.unlink()
    assert request_texts(digest_of_file(fifth_handoff, config_home)) == before


def test_an_opening_is_not_quoted_in_the_next_digest(
    config_home: ConfigHome, fifth_handoff: Path
) -> None:
    """A digest contains no messages from an opening, because an opening only quotes older messages."""
    found = digest_of_file(fifth_handoff, config_home)
    shown = format_opening(found, convert_tokens_to_characters(48_000)).text
    assert not any(metadata_records.DIGEST_BEGINNING in message.text for message in found.talk)
    for text in (FIRST_PROMPTS[0], FIRST_PROMPTS[1], "step 0", "prompt of generation 1"):
        rows = [row for row in shown.split("\n") if row == f"  {text}" or f"- {text} (" in row]
        assert len(rows) == 1, "in the talk, or in a list that holds it whole"
    assert shown.count(metadata_records.DIGEST_BEGINNING) == 1


def test_a_digest_marks_an_outdated_value(config_home: ConfigHome, fifth_handoff: Path) -> None:
    """If a message contains an outdated value, the digest refers to the message with the new value."""
    found = digest_of_file(fifth_handoff, config_home)
    (old,) = [message for message in found.talk if message.text == FIRST_PROMPTS[1]]
    (new,) = [
        message for message in found.talk if message.text == "The port is 9090 for the server."
    ]
    assert old.superseded_sentences == ((FIRST_PROMPTS[1], new.ref),)
    assert new.superseded_sentences == ()
    shown = format_opening(found, convert_tokens_to_characters(24_000)).text
    assert (
        f'  {FIRST_PROMPTS[1]}\n  [superseded at {new.ref[:8]}:{new.ref.rpartition(":")[2]}: "{FIRST_PROMPTS[1]}"]'
        in shown
    )
    assert FIRST_PROMPTS[1] not in entry_texts(found, "constraints")


def test_the_digest_of_a_0_2_0_child_has_old_and_new_prompts(config_home: ConfigHome) -> None:
    """The digest of a child made by version 0.2.0 contains the parent's prompts and then the child's own.

    The child's opening contains the parent's prompts in an older format.
    """
    path = Talk().prompt("go").says("ok").write(config_home)
    plan = agents.plan_fresh_child(
        session_file(str(path)), config_home.where, kind="handoff", contents=ChildContents(Digest())
    )
    child = Path(write_child(plan, config_home.where).file)
    rows = child.read_bytes().split(b"\n")
    goal = [
        ["one", f"{SESSION}:0", "first"],
        ["three", f"{SESSION}:4", "latest"],
        ["two", f"{SESSION}:2", ""],
    ]
    sections = {"goal": goal, "last": [["All done.", f"{SESSION}:5", ""]]}
    rows[DIGEST_LINE_NUMBER] = orjson.dumps(
        {"type": metadata_records.DIGEST_KIND, "version": 1, "sections": sections}
    )
    child.write_bytes(b"\n".join(rows))
    continue_child(str(child), Talk(child.stem, "c").prompt("four").says("Yes."))
    found = digest_of_file(child, config_home)
    assert [message.text for message in found.talk] == [
        "one",
        "two",
        "three",
        "All done.",
        "four",
        "Yes.",
    ]


def plan_large_handoff(home: ConfigHome) -> Any:
    """Plan a handoff with an opening of the maximum size; each of its characters takes three bytes."""
    talk = Talk()
    for number in range(200):
        talk.prompt(f"{number} 이렇게 해 주세요. " * 20).says(f"{number} 그렇게 했습니다. " * 60)
    path = str(talk.write(home))
    contents = ChildContents(digest_of_file(path, home), opening_tokens=48_000)
    return path, agents.plan_fresh_child(
        session_file(path), home.where, kind="handoff", next_step="계속", contents=contents
    )


def test_a_listing_shows_the_title_despite_a_large_opening(config_home: ConfigHome) -> None:
    """A listing finds a title that precedes a large opening, although it reads only 64 KB at each end."""
    _, plan = plan_large_handoff(config_home)
    receipt = write_child(plan, config_home.where)
    rows = Path(receipt.file).read_bytes().split(b"\n")
    assert len(rows[OPENING_RECORD_LINE_NUMBER]) > 3 * BYTES_READ_AT_EACH_END
    assert json.loads(rows[TITLE_LINE_NUMBER])["customTitle"] == receipt.title
    assert sum(len(row) + 1 for row in rows[: TITLE_LINE_NUMBER + 1]) < BYTES_READ_AT_EACH_END
    ends = HeadTail(receipt.file)
    assert (ends.custom_title, ends.cwd, ends.version) == (receipt.title, CWD, CLIENT_VERSION)
    assert ends.was_continued is False
    assert extract_next_step(read_opening(receipt.file)) == "계속"
    continue_child(receipt.file, Talk(receipt.session_id, "c").prompt("weiter").says("ja"))
    assert HeadTail(receipt.file).was_continued is True
    assert HeadTail(receipt.file).custom_title == receipt.title


def test_an_existing_child_with_a_large_opening_is_found(config_home: ConfigHome) -> None:
    """A repeated handoff with the same next step and size finds the existing child.

    This is true until the user types a prompt in the child.
    """
    path, plan = plan_large_handoff(config_home)
    receipt = write_child(plan, config_home.where)
    parent = session_file(path)

    def existing_child_id(step: str, tokens: int) -> str:
        found = find_existing_child(
            Session.from_file(parent, config_home.where),
            "handoff",
            config_home.where,
            step,
            opening_tokens=tokens,
        )
        return found.session_id if found else ""

    assert existing_child_id("계속", 48_000) == receipt.session_id
    assert existing_child_id("계속", 12_000) == ""
    assert existing_child_id("else", 48_000) == ""
    continue_child(receipt.file, Talk(receipt.session_id, "c").prompt("weiter").says("ja"))
    assert existing_child_id("계속", 48_000) == ""
