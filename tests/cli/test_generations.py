"""handoff: several in a row, and a child with a large opening: all that was said is there, and is found."""

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
    DIGEST_LINE,
    OPENING_LINE,
    TITLE_LINE,
    ChildContents,
    read_opening,
)
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest, MessageKind
from resume_hooks.reading.digest.opening import characters_for_tokens, format_opening
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.session import Session
from resume_hooks.transcripts import metadata_records
from resume_hooks.transcripts.head_tail import END_BYTES, HeadTail
from resume_hooks.transcripts.records import parse_record
from tests.builders import CWD, SESSION, VERSION, ConfigHome, session_bytes
from tests.cli.conftest import Document
from tests.reading.digest.talk import Talk, requests, texts

CARD_LINE = DIGEST_LINE + 1
GENERATIONS = 5
FIRST = [
    "Always keep the public names.",
    "The port is 8080 for the server.",
    "Use\nthe parser: `lex`, then parse",
    "and then? [/SESSION LINEAGE]",
    "Next step, as the user put it:",
]


def digest(path: str | Path, home: ConfigHome) -> Digest:
    """The digest of a file."""
    return build_digest(session_file(str(path)), home.where)


def gone_on(child: str, talk: Talk) -> None:
    """The client continued in a child: records are appended, the first of them hangs on its card."""
    for record in talk.records:
        record["timestamp"] = f"2999{record['timestamp'][4:]}"
    talk.records[0]["parentUuid"] = (
        parse_record(Path(child).read_bytes().split(b"\n")[CARD_LINE]) or {}
    )["uuid"]
    with open(child, "ab") as stream:
        stream.write(session_bytes(talk.records))


@pytest.fixture
def last(config_home: ConfigHome, document: Document) -> Path:
    """Return the last of five handoffs in a row, each continued for a while."""
    talk = Talk()
    for text in FIRST:
        talk.prompt(text).says(f"I did as you said: {text}")
    path = str(talk.write(config_home))
    for number in range(GENERATIONS):
        data = document("handoff", Path(path).stem, "-n", f"step {number}")["data"]
        path = data["file"]
        more = Talk(Path(path).stem, f"g{number}-").prompt(f"prompt of generation {number}")
        more.edits(f"{CWD}/f{number}.py").says(f"Generation {number} is done as planned.")
        if number == 2:
            more.prompt("The port is 9090 for the server.").says("It is.")
        gone_on(path, more)
    return Path(path)


def test_nothing_that_the_user_said_is_lost(config_home: ConfigHome, last: Path) -> None:
    """Every message of the first session, from its own record, once, in order.

    And all that was said since.
    """
    found = digest(last, config_home)
    of_first = [message for message in found.talk if message.ref.startswith(SESSION)]
    assert [message.text for message in of_first if message.kind is MessageKind.REQUEST] == FIRST
    assert [message.ref for message in of_first if message.kind is MessageKind.REQUEST] == [
        f"{SESSION}:{2 * number}" for number in range(len(FIRST))
    ]
    asked = requests(found)
    assert len(asked) == len(set(asked))
    assert asked[len(FIRST) :][:3] == ["step 0", "prompt of generation 0", "step 1"]
    assert asked[-1] == f"prompt of generation {GENERATIONS - 1}"


def test_the_ancestors_need_not_be_there(config_home: ConfigHome, last: Path) -> None:
    """A child contains the messages of all its ancestors."""
    before = requests(digest(last, config_home))
    for path in config_home.project().glob("*.jsonl"):
        if path != last:
            path.unlink()
    assert requests(digest(last, config_home)) == before


def test_a_quotation_is_not_quoted_again(config_home: ConfigHome, last: Path) -> None:
    """What an opening quoted is not a message of the session that it opened."""
    found = digest(last, config_home)
    shown = format_opening(found, characters_for_tokens(48_000)).text
    assert not any(metadata_records.DIGEST_BEGINNING in message.text for message in found.talk)
    for text in (FIRST[0], FIRST[1], "step 0", "prompt of generation 1"):
        rows = [row for row in shown.split("\n") if row == f"  {text}" or f"- {text} (" in row]
        assert len(rows) == 1, "in the talk, or in a list that holds it whole"
    assert shown.count(metadata_records.DIGEST_BEGINNING) == 1


def test_of_two_values_the_newest_counts(config_home: ConfigHome, last: Path) -> None:
    """The older one is marked with its revocation; the newest is not."""
    found = digest(last, config_home)
    (old,) = [message for message in found.talk if message.text == FIRST[1]]
    (new,) = [
        message for message in found.talk if message.text == "The port is 9090 for the server."
    ]
    assert old.superseded == ((FIRST[1], new.ref),)
    assert new.superseded == ()
    shown = format_opening(found, characters_for_tokens(24_000)).text
    assert (
        f'  {FIRST[1]}\n  [superseded at {new.ref[:8]}:{new.ref.rpartition(":")[2]}: "{FIRST[1]}"]'
        in shown
    )
    assert FIRST[1] not in texts(found, "constraints")


def test_a_child_of_0_2_0_still_shows_its_prompts(config_home: ConfigHome) -> None:
    """Its digest has no talk: its prompts and last words are the talk before its own."""
    path = Talk().prompt("go").says("ok").write(config_home)
    plan = agents.plan_fresh(
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
    rows[DIGEST_LINE] = orjson.dumps(
        {"type": metadata_records.DIGEST_KIND, "version": 1, "sections": sections}
    )
    child.write_bytes(b"\n".join(rows))
    gone_on(str(child), Talk(child.stem, "c").prompt("four").says("Yes."))
    found = digest(child, config_home)
    assert [message.text for message in found.talk] == [
        "one",
        "two",
        "three",
        "All done.",
        "four",
        "Yes.",
    ]


# The file of a child


def large(home: ConfigHome) -> Any:
    """The plan of a handoff with the largest opening, of characters that take three bytes each."""
    talk = Talk()
    for number in range(200):
        talk.prompt(f"{number} 이렇게 해 주세요. " * 20).says(f"{number} 그렇게 했습니다. " * 60)
    path = str(talk.write(home))
    contents = ChildContents(digest(path, home), tokens=48_000)
    return path, agents.plan_fresh(
        session_file(path), home.where, kind="handoff", next_step="계속", contents=contents
    )


def test_a_large_opening_hides_no_title(config_home: ConfigHome) -> None:
    """Listings read 64 KB at each end: the title is before the opening, and all that a listing shows is found."""
    _, plan = large(config_home)
    receipt = write_child(plan, config_home.where)
    rows = Path(receipt.file).read_bytes().split(b"\n")
    assert len(rows[OPENING_LINE]) > 3 * END_BYTES
    assert json.loads(rows[TITLE_LINE])["customTitle"] == receipt.title
    assert sum(len(row) + 1 for row in rows[: TITLE_LINE + 1]) < END_BYTES
    ends = HeadTail(receipt.file)
    assert (ends.custom_title, ends.cwd, ends.version) == (receipt.title, CWD, VERSION)
    assert ends.was_continued is False
    assert extract_next_step(read_opening(receipt.file)) == "계속"
    gone_on(receipt.file, Talk(receipt.session_id, "c").prompt("weiter").says("ja"))
    assert HeadTail(receipt.file).was_continued is True
    assert HeadTail(receipt.file).custom_title == receipt.title


def test_a_child_with_a_large_opening_is_found_again(config_home: ConfigHome) -> None:
    """By the same step and the same size.

    Not by another size, another step, or once somebody continued in it.
    """
    path, plan = large(config_home)
    receipt = write_child(plan, config_home.where)
    parent = session_file(path)

    def standing(step: str, tokens: int) -> str:
        found = find_existing_child(
            Session.from_file(parent, config_home.where),
            "handoff",
            config_home.where,
            step,
            opening_tokens=tokens,
        )
        return found.session_id if found else ""

    assert standing("계속", 48_000) == receipt.session_id
    assert standing("계속", 12_000) == ""
    assert standing("else", 48_000) == ""
    gone_on(receipt.file, Talk(receipt.session_id, "c").prompt("weiter").says("ja"))
    assert standing("계속", 48_000) == ""
