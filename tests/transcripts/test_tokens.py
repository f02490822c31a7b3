"""Tests of a session's tokens: the API's counts, the estimates, and the context window.

Measuring only the end of a file gives the same size as measuring the whole file.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.errors import SessionNotFound
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.context_size import (
    NO_ANSWER_COUNTED_SINCE_CREATION_REASON,
    measure_chain,
    measure_context_from_tail,
)
from resume_hooks.transcripts.records import MAX_CONTEXT_TOKENS
from resume_hooks.transcripts.tokens import (
    ESTIMATED,
    USUAL_FIRST_REQUEST_TOKENS,
    ContextSize,
    guess_context_window,
    measure_characters_per_token,
)
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    Record,
    assistant,
    boundary,
    conversation,
    last_prompt,
    summary,
    system,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.needs import corpus

PADDING_RECORD = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 2_000},
}
# Number of tokens in the first request of these sessions, without its prompt.
FIRST_REQUEST_TOKENS = 1_088
KEPT_SEGMENT = {"anchorUuid": "s", "headUuid": "r2", "tailUuid": "r3"}


def records_after_compaction(*later_records: Record, segment: Record | None = None) -> list[Record]:
    """Return two turns of 150,000 tokens, a compaction, and the records in ``later_records``."""
    turns = conversation(2)
    turns[3]["message"]["usage"] = {"input_tokens": 150_000}
    return [
        *turns,
        boundary(uuid="b", segment=segment, ts=9),
        summary("x" * 400, uuid="s", parent="b", ts=9),
        *later_records,
    ]


@pytest.fixture(autouse=True)
def use_short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit reads to a few kilobytes so that a part of a small file is not read."""
    monkeypatch.setattr(tokens, "TAIL_SIZES_BYTES", (1_500, 6_000))


def measure_context_both_ways(path: str) -> ContextSize:
    """Measure the context at the file's end and in the whole file, and check that both sizes agree."""
    recent, sure = (
        measure_context_from_tail(path),
        measure_chain(path, scan_transcript(path).chain)[0],
    )
    assert recent == sure
    return recent


def test_measuring_only_the_end_of_corpus_files_gives_the_same_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For every corpus file, measuring only its end gives the same size as measuring all of it.

    The result does not depend on how many bytes at the end are read.
    """
    files = [file for file in corpus().rglob("*.jsonl") if file.stat().st_size]
    for file in files:
        whole = measure_chain(str(file), scan_transcript(str(file)).chain)[0]
        for reaches in ((256 * 1024, 4 * 1024 * 1024), (20_000, 60_000), (3_000, 9_000)):
            monkeypatch.setattr(tokens, "TAIL_SIZES_BYTES", reaches)
            assert measure_context_from_tail(str(file)) == whole, file


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], 0),
        (conversation(1), 1_100),
        (conversation(9), 2_700),
        ([*conversation(3), last_prompt("r1")], 1_500),
        ([*conversation(3), {**last_prompt("r1"), "explicit": True}], 1_100),
        ([*conversation(3), {**last_prompt("r1"), "explicit": True}, *[PADDING_RECORD] * 9], 1_100),
        ([*conversation(3), last_prompt("gone"), *[PADDING_RECORD] * 9], 1_500),
        ([*conversation(3), user("x", uuid="x", parent="r1", ts=50), *[PADDING_RECORD] * 9], 1_100),
        ([*conversation(3), user("x", uuid="x", parent="r1", ts=50)], 1_100),
        ([*conversation(3), *[PADDING_RECORD] * 9, user("x", uuid="x", parent=None, ts=50)], 0),
        (
            [*conversation(3), *[PADDING_RECORD] * 9, user("x", uuid="x", parent="gone", ts=6)],
            1_500,
        ),
        ([*conversation(3), *[PADDING_RECORD] * 9, *conversation(1, prefix="y", start=90)], 1_100),
        (
            [
                last_prompt("r1"),
                *conversation(3),
                *[PADDING_RECORD] * 9,
                *conversation(2, prefix="y", start=90),
            ],
            1_100,
        ),
        ([*conversation(9), {**last_prompt("r1"), "leafUuid": None, "explicit": True}], 0),
        (conversation(9)[::-1], 2_700),
        ([*conversation(9)[::-1], *[PADDING_RECORD] * 9], 2_700),
        (records_after_compaction(), 100 + FIRST_REQUEST_TOKENS),
        (records_after_compaction(*[PADDING_RECORD] * 9), 100 + FIRST_REQUEST_TOKENS),
        (records_after_compaction(segment=KEPT_SEGMENT), 105 + FIRST_REQUEST_TOKENS),
        (
            records_after_compaction(*[PADDING_RECORD] * 9, segment=KEPT_SEGMENT),
            105 + FIRST_REQUEST_TOKENS,
        ),
        (
            records_after_compaction(
                user("x", uuid="x", parent="s", ts=20), *[PADDING_RECORD] * 3, segment=KEPT_SEGMENT
            ),
            105 + FIRST_REQUEST_TOKENS,
        ),
        (records_after_compaction(*conversation(1, prefix="n", start=30)), 1_100),
        (
            records_after_compaction(
                user("x", uuid="x", parent="r3", ts=30), *[PADDING_RECORD] * 9
            ),
            150_000,
        ),
        (
            [
                last_prompt("r1"),
                *records_after_compaction(user("x", uuid="x", parent="s", ts=30), PADDING_RECORD),
            ],
            100 + FIRST_REQUEST_TOKENS,
        ),
    ],
)
def test_a_misleading_end_of_a_file_gives_the_right_size(
    records: list[Record], expected: int, tmp_path: Path
) -> None:
    """The size is right even if there are branches, hints, gaps or compactions near the end of a file."""
    found = measure_context_both_ways(write_session(tmp_path, SESSION, records))
    assert abs(found.tokens - expected) <= 3


def test_a_childs_stated_size_is_used_until_its_own_compaction(tmp_path: Path) -> None:
    """The size in a child's first line is used until the child itself is compacted.

    A compaction that happened before the child was made does not count.
    """
    stated = {"continued_at": "2026-02-01T00:00:00.000Z", "context_tokens": 78_833}
    head = {"type": "continue_metadata", "continue_metadata": stated}
    for at, expected in (
        ("2026-01-31T00:00:00Z", 78_833),
        ("2026-02-01T00:00:01Z", USUAL_FIRST_REQUEST_TOKENS + 1),
    ):
        rows = [head, boundary(uuid="b", ts=at), summary("sum", uuid="s", parent="b", ts=at)]
        assert measure_context_both_ways(write_session(tmp_path, SESSION, rows)).tokens == expected


@pytest.mark.parametrize(
    ("remark", "expected"),
    [
        (
            "resume-hooks: 96,344 tokens before, about 93,235 now. What was taken out can be read",
            93_235,
        ),
        (
            "resume-hooks: The session was full (compaction trim). 96,344 tokens before, about 7 now.",
            7,
        ),
        ("resume-hooks: trim@60k: 96k tokens, now about 41k; back: /untrim", 41_000),
        ("resume-hooks: 1 tokens before, about 9" + "9" * 5_000, MAX_CONTEXT_TOKENS),
        ("another plugin: 96,344 tokens before, about 93,235 now.", USUAL_FIRST_REQUEST_TOKENS + 1),
    ],
)
def test_the_stated_size_is_used_after_a_trim_in_place(
    remark: str, expected: int, tmp_path: Path
) -> None:
    """After a trim in place, the size in this plugin's remark is used until the next answer or compaction."""
    rows = [
        boundary(uuid="b", ts=1),
        summary("sum", uuid="s", parent="b", ts=2),
        system("informational", uuid="i", parent="s", ts=3, content=remark),
    ]
    assert measure_context_both_ways(write_session(tmp_path, SESSION, rows)).tokens == expected
    later = [boundary(uuid="b2", ts=4), summary("sum", uuid="s2", parent="b2", ts=5)]
    assert (
        measure_context_both_ways(write_session(tmp_path, SESSION, [*rows, *later])).tokens
        == USUAL_FIRST_REQUEST_TOKENS + 1
    )
    answered = [
        *rows,
        user("x", uuid="u", parent="i", ts=4),
        assistant("y", uuid="a", parent="u", ts=5, tokens=500),
    ]
    assert measure_context_both_ways(write_session(tmp_path, SESSION, answered)).tokens == 500


def test_an_answer_is_counted_if_one_of_its_records_has_no_parent(tmp_path: Path) -> None:
    """The context size is right even if one record of an answer has no parent.

    The end of the file and the whole file give the same size.
    """
    talk = [user("x", uuid="u0", parent=None, ts=0)]
    talk += [
        user("x", uuid=f"u{number}", parent=f"u{number - 1}", ts=number) for number in range(1, 9)
    ]
    kept = {"anchorUuid": "s", "headUuid": "u6", "tailUuid": "u8"}
    talk += [boundary(uuid="b", ts=9, segment=kept), summary("sum", uuid="s", parent="b", ts=9)]
    for number in range(10, 30):
        parent = talk[-1]["uuid"]
        talk.append(
            tool_use(f"c{number}", uuid=f"a{number}", parent=parent, ts=number, tokens=200 * number)
        )
        talk.append(tool_result(f"c{number}", uuid=f"r{number}", parent=f"a{number}", ts=number))
    talk.append(assistant("y", uuid="one", parent="r29", ts=31, tokens=0, message_id="m"))
    talk += [last_prompt("one"), user("x", uuid="left", parent="one", ts=32)]
    talk.append(assistant("y", uuid="two", parent=None, ts=33, tokens=0, message_id="m"))
    measure_context_both_ways(write_session(tmp_path, SESSION, [last_prompt("gone"), *talk]))


def remove_estimate(context: ContextSize) -> ContextSize:
    """Return the size without the estimate for the text after the last count."""
    return context._replace(tokens=context.tokens - context.added_tokens, added_tokens=0)


@given(st.randoms(use_true_random=False))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_measuring_only_the_end_of_random_sessions_gives_the_same_size(
    tmp_path: Path, chance: random.Random
) -> None:
    """For random sessions, measuring only the end of a file gives the same size as measuring all of it.

    The estimate for the text after the last token count is not compared.
    """
    records: list[Record] = []
    known: list[str] = []
    counts: dict[str, int] = {}
    for number in range(chance.randrange(3, 40)):
        name = f"n{number}"
        parent = chance.choice([known[-1] if known else None] * 12 + [*known[-5:], None, "gone"])
        ts = number + chance.choice([0] * 9 + [-3])
        kind = chance.choice("uaaatthpbs")
        if kind == "u":
            records.append(user("x" * chance.choice([10, 900]), uuid=name, parent=parent, ts=ts))
        elif kind == "a":
            answer = chance.choice(["m", "n", "o", *[f"own{number}"] * 4])
            # All records of an answer have the same count.
            count = counts.setdefault(answer, chance.choice([0, 100 * number + 50]))
            records.append(
                assistant("y", uuid=name, parent=parent, ts=ts, tokens=count, message_id=answer)
            )
        elif kind == "t":
            records.append(
                tool_use(f"c{number}", uuid=name, parent=parent, ts=ts, tokens=200 * number + 90)
            )
            records.append(tool_result(f"c{number}", uuid=f"{name}r", parent=name, ts=ts))
            known.append(name)
            name = f"{name}r"
        elif kind == "h":
            records.append(last_prompt(chance.choice([*known, "gone"])))
            continue
        elif kind == "p":
            records.append(PADDING_RECORD)
            continue
        else:
            segment = None
            if kind == "s" and len(known) > 4:
                segment = {"anchorUuid": f"{name}s", "headUuid": known[-3], "tailUuid": known[-1]}
            records.append(boundary(uuid=name, ts=ts, segment=segment))
            records.append(summary("sum", uuid=f"{name}s", parent=name, ts=ts))
            known.append(name)
            name = f"{name}s"
        known.append(name)
    if records:
        path = write_session(tmp_path, SESSION, records)
        recent, sure = (
            measure_context_from_tail(path),
            measure_chain(path, scan_transcript(path).chain)[0],
        )
        assert remove_estimate(recent) == remove_estimate(sure)


def test_large_files_skip_compacted_records(tmp_path: Path) -> None:
    """In files larger than 5 MiB, a parent before the compaction is ignored, as it is in the client."""
    big = {**PADDING_RECORD, "snapshot": {"padding": "x" * 6_000_000}}
    records = records_after_compaction(
        user("x" * 40, uuid="x", parent="r3", ts=30), *[PADDING_RECORD] * 9
    )
    assert measure_context_both_ways(write_session(tmp_path, SESSION, [big, *records])).tokens == 10


def test_a_deleted_file_raises_session_not_found(tmp_path: Path) -> None:
    """Measuring a deleted file raises ``SessionNotFound``."""
    with pytest.raises(SessionNotFound):
        measure_context_from_tail(str(tmp_path / "gone.jsonl"))


@pytest.mark.parametrize(
    ("context_tokens", "expected"), [(0, 200_000), (200_000, 200_000), (200_001, 1_000_000)]
)
def test_the_default_window_is_a_million_tokens_for_larger_contexts(
    context_tokens: int, expected: int
) -> None:
    """The default window has 200,000 tokens, or a million tokens if a larger context has to fit into it."""
    assert guess_context_window(context_tokens) == expected


def test_a_given_window_has_precedence(tmp_path: Path) -> None:
    """A window that is given as an argument replaces the window that is derived from the session."""
    path = write_session(tmp_path, SESSION, conversation(1))
    assert measure_context_from_tail(path, 400_000) == ContextSize(1_100, 400_000)
    assert measure_chain(path, scan_transcript(path).chain, window=400_000)[0].window == 400_000


@pytest.mark.parametrize(
    ("original", "window"), [(606_957, 1_000_000), (150_000, 200_000), ("many", 200_000)]
)
def test_a_trimmed_child_has_the_window_of_its_parent(
    tmp_path: Path, original: object, window: int
) -> None:
    """A trimmed child has the window of its parent, unless the user set one."""
    first: Record = {
        "trim_metadata": {"stats": {"original_tokens": original, "trimmed_tokens": 168_879}}
    }
    turns = conversation(2)
    path = write_session(tmp_path, SESSION, [first, turns[0]])
    known = window == 1_000_000
    assert measure_context_from_tail(path) == ContextSize(
        168_879, window, ESTIMATED, NO_ANSWER_COUNTED_SINCE_CREATION_REASON, is_window_known=known
    )
    turns[-1]["message"]["usage"] = {"input_tokens": 170_000}
    path = write_session(tmp_path, SESSION, [first, *turns])
    found = ContextSize(170_000, window, is_window_known=known)
    assert (
        measure_context_from_tail(path)
        == measure_chain(path, scan_transcript(path).chain)[0]
        == found
    )
    assert measure_context_from_tail(path, 200_000).window == 200_000


def test_the_percentage_excludes_the_reserved_tokens() -> None:
    """The percentage refers to the window without the tokens that are reserved for the answer.

    ``compacts_at_once`` is true above 167,000 of 200,000 tokens.
    """
    assert ContextSize(90_000, 200_000).percent == 50
    assert not ContextSize(167_000, 200_000).compacts_at_once
    assert ContextSize(167_001, 200_000).compacts_at_once


def test_the_session_ratio_is_measured_in_characters_per_token(tmp_path: Path) -> None:
    """A session's ratio is its growth in characters divided by its growth in tokens.

    Both are measured between the first and the last count.
    """
    records = [
        user("x" * 9_999, uuid="u1"),
        assistant("y", uuid="a1", parent="u1", ts=1, tokens=20_000),
        user("x" * 5_000, uuid="u2", parent="a1", ts=2),
        assistant("y" * 1_000, uuid="a2", parent="u2", ts=3, tokens=22_000),
    ]
    assert (
        measure_characters_per_token(
            scan_transcript(write_session(tmp_path, SESSION, records)).chain
        )
        == 3.0
    )


@pytest.mark.parametrize("added", [100, 1_000_000])
def test_the_session_ratio_has_a_minimum_and_a_maximum(tmp_path: Path, added: int) -> None:
    """A session's ratio of characters to tokens is limited to the range from 1.5 to 8.

    Without these limits, images or a cut in the conversation would distort the ratio.
    """
    records = [
        assistant("y", uuid="a1", ts=1, tokens=20_000),
        user("x" * added, uuid="u2", parent="a1", ts=2),
        assistant("y", uuid="a2", parent="u2", ts=3, tokens=30_000),
    ]
    assert measure_characters_per_token(
        scan_transcript(write_session(tmp_path, SESSION, records)).chain
    ) in {1.5, 8.0}


def test_a_session_without_counts_has_four_characters_per_token() -> None:
    """In a session without token counts, a token is assumed to have four characters."""
    assert measure_characters_per_token([]) == 4.0
