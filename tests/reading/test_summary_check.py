"""Tests of checking a summary against the session's records."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.reading.summary_check import (
    NOT_IN_TRANSCRIPT_NOTE,
    check_summary,
    read_record_texts,
)
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.transcripts.metadata_records import LATER_PART_PREFIX
from tests.builders import (
    SESSION,
    attachment,
    custom_title,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)

SESSION_TEXTS = [
    (":0", "please mend the tabs in src/parser.py, and keep the public names"),
    (":1", "[call of Bash]\ncommand: pytest tests/test_parser.py -q"),
    (":2", "212 passed in 3.40s"),
    (":3", "I renamed parse_line to parseRow in src/parser.py."),
    ("5e12a303:9", "the root cause is TabStop in src/lexer.py"),
    ("", "def old_name(): pass"),
]


def checked_summary(text: str) -> str:
    """Return the checked form of a summary."""
    return check_summary(text, SESSION_TEXTS).text


@pytest.mark.parametrize(
    ("sentence", "note"),
    [
        ("Renamed `parse_line` to `parseRow`.", " (:3)"),
        ("The tabs in src/parser.py are to be mended.", " (:0)"),
        ("The cause was TabStop in `lexer.py`.", " (5e12a303:9)"),
        ("`pytest tests/test_parser.py -q`: 212 passed.", " (:1)"),
        ('The user said "keep the public names".', " (:0)"),
        ("Mended src/printer.py.", f" [{NOT_IN_TRANSCRIPT_NOTE}: src/printer.py]"),
        ("All 213 tests passed.", f" [{NOT_IN_TRANSCRIPT_NOTE}: 213]"),
        (
            "`npm run lint --fix` is green.",
            f" [{NOT_IN_TRANSCRIPT_NOTE}: npm run lint --fix, npm, run]",
        ),
        (
            'They said: "Mend it. Drop all `tabs`!" and left',
            f" [{NOT_IN_TRANSCRIPT_NOTE}: Mend it Drop all tabs]",
        ),
        (
            'The user decided: "drop the public names".',
            f" [{NOT_IN_TRANSCRIPT_NOTE}: drop the public names]",
        ),
        ("The work is nearly done.", ""),
        ("`old_name` went away.", ""),
        ("The `public` names are in TabStop.", ""),
    ],
)
def test_a_sentence_gets_a_reference_or_a_mark(sentence: str, note: str) -> None:
    """A supported sentence gets a reference. An unsupported sentence gets a mark with the missing claims.

    A sentence gets neither if it has no claims, if only text without a reference contains them, or
    if no single record contains all of them.
    """
    assert checked_summary(sentence) == f"{sentence}{note}"


def test_the_markdown_of_a_checked_summary_is_kept() -> None:
    """The headings, tables and code of a checked summary are unchanged. Only its sentences are checked."""
    text = (
        "# Work on TabStopper\n\n- **Done.** Renamed `parse_line` to `parseRow`. Mended src/printer.py.\n"
        "1. See TabStop in `lexer.py`\n\n```\nTabStopper()\n```\n| TabStopper | 1 |\n"
    )
    found = check_summary(text, SESSION_TEXTS)
    assert found.text == (
        "# Work on TabStopper\n\n- **Done.** Renamed `parse_line` to `parseRow`. (:3) Mended src/printer.py. "
        f"[{NOT_IN_TRANSCRIPT_NOTE}: src/printer.py]\n"
        "1. See TabStop in `lexer.py` (5e12a303:9)\n\n```\nTabStopper()\n```\n| TabStopper | 1 |\n"
    )
    assert (found.sentence_count, found.referenced_sentence_count, found.marked_sentence_count) == (
        4,
        2,
        1,
    )
    assert found.description == f"of 4 sentences 2 tied to records, 1 {NOT_IN_TRANSCRIPT_NOTE}"


def test_a_sentence_with_the_right_reference_gets_no_second_one() -> None:
    """A sentence that already has the right reference gets no second reference.

    A sentence that has a wrong reference also gets the right one.
    """
    assert checked_summary("Renamed `parse_line`. (:1, :3)") == "Renamed `parse_line`. (:1, :3)"
    assert checked_summary("Renamed `parse_line`. (:1)") == "Renamed `parse_line`. (:1) (:3)"
    assert check_summary("Renamed `parse_line`. (:3)", SESSION_TEXTS).referenced_sentence_count == 1


SENTENCE_PIECES = st.sampled_from([
    "src/parser.py", "`parse_line()`", "`x y z`", "212", '"keep the public names"', '"a, b. C?"', "TabStop", "Foo.",
    "A", "bar!", '"', "`", "\u201c", "\u201d", "**", "(", ")", "(:3)", "[x]", "。", "-", "1.",
    "\n", "\n- ", "```\n", " ", "# ", "| ", "é", "e.g.", f"[{NOT_IN_TRANSCRIPT_NOTE}: a]",
])  # fmt: skip


@given(st.one_of(st.lists(SENTENCE_PIECES, max_size=30).map(" ".join), st.text(max_size=200)))
def test_a_second_check_of_a_summary_changes_nothing(text: str) -> None:
    """A second check of a summary changes nothing, and a check only adds text."""
    once = check_summary(text, SESSION_TEXTS)
    assert check_summary(once.text, SESSION_TEXTS) == once
    letters = iter(once.text)
    assert all(letter in letters for letter in text)
    added = re.escape(NOT_IN_TRANSCRIPT_NOTE)
    assert len(re.sub(rf" (?:\[{added}[^\]]*\]|\([\w-]*:\d+\))", "", once.text)) <= len(text)
    assert once.referenced_sentence_count + once.marked_sentence_count <= once.sentence_count


def test_a_mark_names_at_most_three_claims() -> None:
    """A mark names at most three claims, which are shortened and contain no sentence end."""
    found = checked_summary(
        'He said "' + "go on. Then [stop] it! " * 20 + '" and `aa_b`, `bb_c`, `cc_d`.'
    )
    (mark,) = re.findall(rf"\[{NOT_IN_TRANSCRIPT_NOTE}: ([^\]]*)\]", found)
    assert mark.count(", ") == 2
    assert len(mark) < 200
    assert not re.search(r"[.!?\[](?:\s|$)", mark.replace("[stop", ""))


def test_only_the_words_of_the_conversation_are_evidence(tmp_path: Path) -> None:
    """Prompts, calls and results are evidence. Summaries, titles and the plugin's own texts are not."""
    told_before = f"hook says: {LINEAGE_START_MARKER}\n1. other\n{LINEAGE_END_MARKER}\n\nsummary by haiku: SecretPlan"
    command = (
        "<command-message>x</command-message>\n<command-name>/x:go</command-name>\n"
        "<command-args>far</command-args>"
    )
    records = [
        user("mend it", uuid="a"),
        tool_use("t", uuid="b", parent="a", name="Bash", tool_input={"command": "make all"}),
        tool_result("t", "made", uuid="c", parent="b", toolUseResult={"originalFile": "as it was"}),
        summary("SecretPlan", uuid="d", parent="c"),
        attachment(told_before, uuid="e", parent="d"),
        attachment(
            f"hook says: {LATER_PART_PREFIX}: part 2 of 2\nSecretPlan", uuid="g", parent="e"
        ),
        custom_title("SecretPlan"),
        user(command, uuid="f", parent="e"),
    ]
    found = list(read_record_texts(write_session(tmp_path, SESSION, records), "11111111"))
    assert [ref for ref, _ in found] == ["11111111:0", "11111111:1", "11111111:2", "", "11111111:7"]
    assert "make all" in found[1][1]
    assert found[3][1] == "as it was"
    assert found[4][1].endswith("\n/x:go far")
    assert not any("SecretPlan" in text for _, text in found)


@pytest.mark.parametrize(
    "piece", ["(:1, ", "(:11:", ".", "! ", "A. ", "*", "[not in the transcript: ", "- ", "`a_b` "]
)
def test_hostile_summaries_are_checked_quickly(piece: str) -> None:
    """A hostile summary of 16,000 characters is checked within two seconds."""
    begun = time.perf_counter()
    check_summary(piece * (16_000 // len(piece)), SESSION_TEXTS)
    assert time.perf_counter() - begun < 2
