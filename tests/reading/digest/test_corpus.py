"""Tests of digests of real sessions: each entry refers to a record that contains the entry's words."""

from __future__ import annotations

import re

from resume_hooks.reading.digest import entries
from resume_hooks.reading.digest.entries import DigestEntry
from resume_hooks.reading.digest.opening import format_opening, format_whole_digest
from resume_hooks.reading.digest.prescan import Prescan, prescan_line
from resume_hooks.reading.digest.sections import SECTION_NAMES
from resume_hooks.reading.digest.skills import ACTIVE_SKILL_NOTE, SKILL_TEXT_NOTE, STEP_REACHED_NOTE
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records
from tests.corpus import RealSession
from tests.needs import corpus, corpus_sessions


def _record_text(line: bytes) -> str:
    """Return all texts of a line's record, joined with single spaces."""
    record = records.parse_record(line) or {}
    found = " ".join([*records.iterate_strings(record), records.prompt_text(record)])
    return " ".join(plain_line(found).split())


def _required_words(section: str, entry: DigestEntry, record_text: str) -> list[str]:
    """Return the words of a digest's entry that must occur in the entry's record."""
    text = entry.text
    if section in {"changed", "read"}:
        return [text.rstrip("…").rpartition("/")[2]]
    if section in {"failures", "errors"} and text.startswith("`"):
        return [re.split(r"…?` (?:exit|failed)", text[1:])[0].strip("… ")]
    if section == "refusals" and text.startswith("refused by "):
        return (
            [text.rstrip("…").rpartition(": ")[2][-30:]] if "the user said:" in record_text else []
        )
    if section == "answers":
        return [part.rstrip("…") for part in text.split(" -> ")]
    # An entry of the section "next" is a label that the digest adds, followed by quoted sentences.
    if section == "next":
        text = text.partition(': "')[2].rstrip('"…')
    # An entry of these sections may also contain a neighbouring sentence.
    if section in {
        "constraints",
        "next",
    }:
        return [sentence.rstrip("…") for sentence in re.split(r"(?<=[.!?:])\s", text)]
    # The record does not contain the relative path at the end of the entry.
    if section == "marks":
        text = text.rpartition(" (")[0]
    if section == "artefacts":
        return [text.removeprefix("commit ").removeprefix("commit: ").split()[0]]
    if text.startswith("eval $'"):
        return [
            re.sub(
                r"\\(.)", lambda found: " " if found[1] in "nt" else found[1], text[7:].rstrip("…")
            )
        ]
    return [text.rstrip("…").rstrip()]


def _required_words_of_now(text: str) -> list[str]:
    """Return those words of an entry about the present state that the entry's record must contain.

    The list is empty for entries about the repository and for unanswered requests.
    """
    head, colon, named = text.partition(": ")
    ours = (
        "git",
        "in ",  # These rows name a folder and the branch that was checked out in it.
        "sub-agents also worked",
        "staged for the next commit",
        "not committed",
        "not tracked by git",
        "plan mode is on",
        "no git command ran",
        "no git command of the session left",
        "git status also lists",
    )
    if not colon or head.startswith(ours):
        return []
    if head == "commits that no git command of the session made":
        return named.partition(";")[0].split(", ")
    if head == "the session ends before this call was answered":
        return [named.partition(" ")[2][:60]]
    if head in {"read this first", "a document about work that may be partly done"}:
        return [named.rpartition("/")[2]]
    return [part for part in re.split(r"…|\n", named) if part]


def _without_omissions(text: str) -> str:
    """Return a text without the whitespace and quotes that a shortened command or answer may omit."""
    return re.sub(r"[\s\\\"']+", "", text)


def test_every_reference_leads_to_its_record(real_session: RealSession) -> None:
    """Each entry of a digest refers to a record that contains the entry's words."""
    for section in SECTION_NAMES:
        for entry in real_session.digest.section_entries(section):
            _, _, number = entry.ref.rpartition(":")
            said = _record_text(real_session.lines[int(number)]) if number else ""
            if section == "skills" and entry.note in {
                SKILL_TEXT_NOTE,
                ACTIVE_SKILL_NOTE,
                STEP_REACHED_NOTE,
            }:
                continue  # The name of the skill may be in the command before this record.
            claimed = (
                _required_words_of_now(entry.text)
                if section in {"now", "pending"}
                else _required_words(section, entry, said)
            )
            for words in claimed:
                assert _without_omissions(words) in _without_omissions(said), (section, entry)


DIGEST_ADDITION_PATTERN = re.compile(
    r"(?<!\S)\[\.\.\.\](?!\S)|"
    r"\[\.\.\. [\d,]+ (?:characters|lines|rows|words)\b.*|\[pasted:|end of the paste\]|^\[\w{1,40}:\]$|"
    r"^\[in answer to: .*\]$|\[[A-Z][\w -]* removed\]"
)
"""Matches what the digest itself adds to a message: notes on omitted text, and borders of pastes.
"""


def test_every_message_quotes_its_record(real_session: RealSession) -> None:
    """Each part of a message in the talk occurs in the record that the message refers to.

    The texts that the digest itself adds, for example where it omits text, are ignored.
    """
    for message in real_session.digest.talk:
        _, _, number = message.ref.rpartition(":")
        said = _without_omissions(_record_text(real_session.lines[int(number)]))
        for row in message.text.split("\n"):
            for part in re.split(
                r" -> |…|(?<=^/compact) |(?<=[.!?])\s", DIGEST_ADDITION_PATTERN.sub("", row)
            ):
                assert _without_omissions(part) in said, (message.ref, row)


def test_every_digest_fits_and_can_be_stored(real_session: RealSession) -> None:
    """A digest fits each size limit, has no blank lines, and is unchanged after it is stored and read."""
    digest = real_session.digest
    for room in (600, 4_000, 16_000, 48_000, 192_000, None):
        text = format_opening(digest, room).text
        assert room is None or len(text) <= room
        assert all(row.strip() for row in text.split("\n"))
    assert format_whole_digest(digest) == format_opening(digest, None).text
    line = entries.format_digest_record(digest)
    assert len(line) < entries.MAX_DIGEST_LINE_BYTES
    assert entries.parse_digest(records.parse_record(line) or {}) == digest


def test_a_prescan_matches_parsing(real_session: RealSession) -> None:
    """The prescan of a line in a real session finds the same ids as the parser."""
    for line in real_session.lines:
        if (found := prescan_line(line)) is not None:
            assert _parse_prescan(line) == found, line[:300]


def test_most_lines_are_prescanned() -> None:
    """More than 100 lines of the largest real session can be prescanned."""
    largest = max((corpus(), *corpus_sessions()), key=lambda path: path.stat().st_size)
    assert sum(prescan_line(line) is not None for line in largest.read_bytes().split(b"\n")) > 100


def _parse_prescan(line: bytes) -> Prescan:
    record = records.parse_record(line) or {}
    answered = records.list_results(record)
    assert len(answered) <= 1
    assert not any(block.get("is_error") for block in answered)
    assert not answered or records.get_kind(record) == "user"
    if not answered:
        assert {block.get("type") for block in records.list_blocks(record)} <= {"thinking"}
        assert records.get_kind(record) in {"assistant", "attachment", "progress"}
    return Prescan(
        records.get_string(record, "uuid"),
        records.get_string(record, "parentUuid"),
        record.get("isSidechain") is True,
        records.get_string(answered[0], "tool_use_id") if answered else "",
    )
