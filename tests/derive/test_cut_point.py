"""Tests of cutting a conversation at a position without separating a call from its result."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.derive.cut_point import (
    Cut,
    CutAtMessage,
    CutAtRecord,
    CutAtTurn,
    CutBeforeCompaction,
    CutBeforeInstant,
    CutSelector,
    cut_conversation,
    parse_cut,
)
from resume_hooks.errors import UsageError
from resume_hooks.sessions.record_references import RecordOffset, Reference
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.transcript import ScanStart, Transcript, scan_transcript
from tests.builders import (
    EPOCH,
    SESSION,
    Record,
    assistant,
    attachment,
    boundary,
    call,
    conversation,
    iso_time,
    last_prompt,
    progress,
    result,
    summary,
    system,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.search.index.probe import uuid_of_text

UUIDS_BY_NAME = {
    name: uuid_of_text(number) for number, name in enumerate(("p1", "a1", "p2", "a2"), 1)
}


def scan_records(folder: Path, records: list[Record]) -> Transcript:
    """Return a completely scanned session with these records."""
    return scan_transcript(write_session(folder, SESSION, records))


def format_kept_uuids(cut: Cut | None) -> str:
    """Return the uuids of the kept records.

    ``>`` or ``<`` at the end says that the cut moved forward or back.
    """
    assert cut is not None
    mark = {1: " >", -1: " <", 0: ""}[cut.shift_direction]
    return " ".join(node.uuid for node in cut.nodes) + mark


def make_two_turns() -> list[Record]:
    """Return two turns on lines 0 to 8. The first turn has two parallel calls."""
    return [
        user("first", uuid="p1", ts=0),
        tool_use("x", uuid="c1", parent="p1", ts=10, message_id="msg_1"),
        tool_use("y", uuid="c2", parent="c1", ts=11, message_id="msg_1"),
        tool_result("x", uuid="r1", parent="c1", ts=20),
        tool_result("y", uuid="r2", parent="c2", ts=21),
        assistant("done", uuid="a1", parent="r2", ts=30, message_id="msg_2"),
        last_prompt("a1"),
        user("second", uuid="p2", parent="a1", ts=40),
        assistant("fine", uuid="a2", parent="p2", ts=50, message_id="msg_3"),
    ]


def make_cut_before(seconds: float) -> CutBeforeInstant:
    """Return a cut before the instant that is ``seconds`` seconds after ``EPOCH``."""
    return CutBeforeInstant(EPOCH + timedelta(seconds=seconds))


FIRST_TURN_RECORDS = "p1 c1 c2 r1 r2"
CUT_CASES: dict[str, tuple[CutSelector, str]] = {
    "a prompt": (CutAtRecord(0), "p1"),
    "an answer": (CutAtRecord("a1"), f"{FIRST_TURN_RECORDS} a1"),
    "an answer by its line": (CutAtRecord(5), f"{FIRST_TURN_RECORDS} a1"),
    "an answer by its place": (CutAtRecord(RecordOffset(0, "a1")), f"{FIRST_TURN_RECORDS} a1"),
    "a call takes its result along, and its siblings": (
        CutAtRecord("c1"),
        f"{FIRST_TURN_RECORDS} >",
    ),
    "a result takes the other results along": (CutAtRecord("r1"), f"{FIRST_TURN_RECORDS} >"),
    "the last result is whole": (CutAtRecord("r2"), FIRST_TURN_RECORDS),
    "the end": (CutAtRecord(8), f"{FIRST_TURN_RECORDS} a1 p2 a2"),
    "a line that is no message": (CutAtRecord(6), f"{FIRST_TURN_RECORDS} a1"),
    "a message": (CutAtMessage("msg_2"), f"{FIRST_TURN_RECORDS} a1"),
    "a message with calls": (CutAtMessage("msg_1"), f"{FIRST_TURN_RECORDS} >"),
    "the first turn": (CutAtTurn(1), f"{FIRST_TURN_RECORDS} a1"),
    "the last turn": (CutAtTurn(2), f"{FIRST_TURN_RECORDS} a1 p2 a2"),
    "the last turn, from the end": (CutAtTurn(-1), f"{FIRST_TURN_RECORDS} a1 p2 a2"),
    "the last but one": (CutAtTurn(-2), f"{FIRST_TURN_RECORDS} a1"),
    "before an instant": (make_cut_before(35), f"{FIRST_TURN_RECORDS} a1"),
    "before the instant of a record": (make_cut_before(30), FIRST_TURN_RECORDS),
    "an instant between calls and results goes back": (make_cut_before(15), "p1 <"),
    "an instant between results goes back": (make_cut_before(20.5), "p1 <"),
    "an instant after all": (make_cut_before(1_000), f"{FIRST_TURN_RECORDS} a1 p2 a2"),
}


@pytest.mark.parametrize("case_name", CUT_CASES)
def test_a_cut_keeps_the_records_up_to_its_position(case_name: str, tmp_path: Path) -> None:
    """A cut keeps the records up to its position and moves so that no call loses its result.

    A cut at a record moves forward, and a cut before an instant moves back.
    """
    selector, expected = CUT_CASES[case_name]
    assert (
        format_kept_uuids(cut_conversation(scan_records(tmp_path, make_two_turns()), selector))
        == expected
    )


def test_a_cut_names_its_last_message_and_has_remarks(tmp_path: Path) -> None:
    """A cut names its last message and the turn of this message.

    It has a remark if it moved or if the requested record is not a message.
    """
    transcript = scan_records(tmp_path, make_two_turns())
    found = cut_conversation(transcript, CutAtRecord("c1"))
    assert found is not None
    assert (found.last_message.line_number, found.turn_number, found.requested_position) == (
        4,
        1,
        "record c1",
    )
    assert found.remarks == ("The cut moved forward to record 4, so that no tool call is split.",)
    back = cut_conversation(transcript, make_cut_before(15))
    assert back is not None
    assert back.remarks == ("The cut moved back to record 0, so that no tool call is split.",)
    line = cut_conversation(transcript, CutAtRecord(6))
    assert line is not None
    assert line.remarks == (
        "Record 6 is not a message, so the cut is after the message before it.",
    )


MISSING_POSITIONS: dict[str, tuple[CutSelector, str]] = {
    "a line past the end": (CutAtRecord(9), "lines 0 to 8"),
    "a place past the end": (CutAtRecord(RecordOffset(10**9)), "lines 0 to 8"),
    "a uuid from elsewhere": (CutAtRecord(uuid_of_text(99)), "No record"),
    "a message from elsewhere": (CutAtMessage("msg_9"), "No message msg_9"),
    "no message": (CutAtMessage(""), "No message"),
    "a turn past the end": (CutAtTurn(3), "turns 1 to 2"),
    "turn 0": (CutAtTurn(0), "No turn 0"),
    "a turn before the first": (CutAtTurn(-3), "No turn -3"),
    "before all": (make_cut_before(0), "The first message is from 2026-01-31 09:30 UTC"),
}


@pytest.mark.parametrize("case_name", MISSING_POSITIONS)
def test_a_missing_position_is_an_error(case_name: str, tmp_path: Path) -> None:
    """A cut at a missing position raises an error that names existing positions."""
    selector, expected = MISSING_POSITIONS[case_name]
    with pytest.raises(UsageError) as raised:
        cut_conversation(scan_records(tmp_path, make_two_turns()), selector)
    assert expected in f"{raised.value.message} {raised.value.remedy}"
    assert raised.value.exit_code == 2


def test_a_cut_before_the_first_message_is_an_error(tmp_path: Path) -> None:
    """A cut that would keep no message raises an error."""
    begun = [system("informational", uuid="s", ts=0), *conversation(1, start=5)]
    with pytest.raises(UsageError, match="There is no message before the cut"):
        cut_conversation(scan_records(tmp_path, begun), CutAtRecord("s"))
    remark = [
        user("remark", uuid="m", ts=0, isMeta=True),
        user("asked", uuid="p", parent="m", ts=1),
    ]
    with pytest.raises(UsageError, match="There is no message before the cut"):
        cut_conversation(scan_records(tmp_path, remark), CutAtRecord("m"))


def test_a_cut_at_an_unanswered_call_moves_back(tmp_path: Path) -> None:
    """A cut at a call without a result moves back to the message before the call."""
    rows = [*conversation(1), tool_use("x", uuid="c", parent="r1", ts=9)]
    assert (
        format_kept_uuids(cut_conversation(scan_records(tmp_path, rows), CutAtRecord("c")))
        == "r0 r1 <"
    )


def test_a_cut_outside_the_conversation_is_an_error(tmp_path: Path) -> None:
    """A cut at a progress record or a sub-agent's record raises an error."""
    rows = [
        *conversation(1),
        progress(uuid="g", parent="r1", ts=5),
        user("aside", uuid="k", ts=6, isSidechain=True),
    ]
    for uuid, why in (("g", "not part of the conversation"), ("k", "a sub-agent's")):
        with pytest.raises(UsageError, match=why):
            cut_conversation(scan_records(tmp_path, rows), CutAtRecord(uuid))


def test_a_cut_at_an_attachment_does_not_move(tmp_path: Path) -> None:
    """A cut at an attachment keeps the attachment and has no remark."""
    rows = [
        *conversation(1),
        attachment("TEXT", uuid="t", parent="r1", ts=5),
        user("on", uuid="p", parent="t", ts=6),
    ]
    found = cut_conversation(scan_records(tmp_path, rows), CutAtRecord("t"))
    assert format_kept_uuids(found) == "r0 r1 t"
    assert found is not None
    assert found.remarks == ()


def make_branched_session() -> list[Record]:
    """Return a first turn, a second turn that was abandoned, and the turn that replaced it."""
    return [
        *conversation(1),
        user("LEFT", uuid="p2", parent="r1", ts=10),
        tool_use("x", uuid="c", parent="p2", ts=11),
        tool_result("x", uuid="o", parent="c", ts=12),
        user("TAKEN", uuid="p3", parent="r1", ts=20),
        assistant("well", uuid="a3", parent="p3", ts=21, message_id="msg_3"),
    ]


def test_a_cut_can_be_on_an_abandoned_branch(tmp_path: Path) -> None:
    """A cut at a record on an abandoned branch keeps that branch's conversation, and a remark says so."""
    transcript = scan_records(tmp_path, make_branched_session())
    assert [node.uuid for node in transcript.chain] == ["r0", "r1", "p3", "a3"]
    for selector, expected in (
        (CutAtRecord("p2"), "r0 r1 p2"),
        (CutAtRecord("c"), "r0 r1 p2 c o >"),
        (CutAtTurn(2), "r0 r1 p2 c o"),
        (CutAtTurn(3), "r0 r1 p3 a3"),
        (CutAtTurn(1), "r0 r1"),
        (make_cut_before(15), "r0 r1"),
    ):
        assert format_kept_uuids(cut_conversation(transcript, selector)) == expected
    found = cut_conversation(transcript, CutAtRecord("o"))
    assert found is not None
    assert found.remarks == ("The cut is on an abandoned branch: the fork contains that branch.",)


def make_compacted_session() -> list[Record]:
    """Return two turns, a compaction that keeps the last message, and a third turn, on lines 0 to 7."""
    kept_message = {"headUuid": "r3", "anchorUuid": "s", "tailUuid": "r3"}
    return [
        *conversation(2),
        boundary(uuid="b", before="r3", ts=10, segment=kept_message),
        summary("SUMMARY", uuid="s", parent="b", ts=11),
        user("on", uuid="p", parent="s", ts=20),
        assistant("well", uuid="a", parent="p", ts=21),
    ]


def test_a_cut_can_be_before_a_compaction(tmp_path: Path) -> None:
    """A cut before a compaction keeps the conversation up to the compaction, and a remark says so.

    A cut at a message that the compaction kept also keeps the summary.
    """
    transcript = scan_records(tmp_path, make_compacted_session())
    assert [node.uuid for node in transcript.chain] == ["b", "s", "r3", "p", "a"]
    for selector, expected in (
        (CutAtRecord("r1"), "r0 r1"),
        (CutAtRecord("r3"), "b s r3"),
        (CutAtRecord("s"), "b s"),
        (CutAtTurn(1), "r0 r1"),
        (CutAtTurn(3), "b s r3 p a"),
        (make_cut_before(2.5), "r0 r1 r2"),
        (make_cut_before(15), "b s r3"),
        (CutBeforeCompaction(), "r0 r1 r2 r3"),
    ):
        assert format_kept_uuids(cut_conversation(transcript, selector)) == expected
    found = cut_conversation(transcript, CutAtRecord("r1"))
    assert found is not None
    assert found.remarks == (
        "The cut is before a compaction, so the fork contains the conversation as it was before the compaction.",
    )


def test_a_cut_before_a_missing_compaction_is_an_error(tmp_path: Path) -> None:
    """A cut before a compaction raises an error if there is no compaction or if its branch was abandoned."""
    left = [
        boundary(uuid="b", before="r1", ts=1_000),
        assistant("on", uuid="z", parent="r1", ts=1_001),
    ]
    for more, why in (([], "was never compacted"), (left, "on an abandoned branch")):
        with pytest.raises(UsageError, match=why):
            cut_conversation(
                scan_records(tmp_path, [*make_two_turns(), *more]), CutBeforeCompaction()
            )


def test_a_cut_outside_the_scanned_part_needs_the_whole_file(tmp_path: Path) -> None:
    """If only a part of the file was scanned, a cut outside that part returns None.

    The caller must scan the whole file first. A cut inside the part has no turn number.
    """
    path = write_session(tmp_path, SESSION, make_compacted_session())
    whole = scan_transcript(path)
    part = scan_transcript(path, start=ScanStart(whole.nodes[4].offset, 4))
    assert not part.is_whole
    assert cut_conversation(part, CutAtRecord("r1")) is None
    assert cut_conversation(part, CutAtRecord(1)) is None
    assert cut_conversation(part, CutAtMessage("msg_r1")) is None
    assert cut_conversation(part, CutAtTurn(1)) is None
    assert cut_conversation(part, make_cut_before(2)) is None
    found = cut_conversation(part, CutAtRecord("a"))
    assert found is not None
    assert found.turn_number is None


PARSED_POSITIONS: dict[str, CutSelector | Reference] = {
    "41": CutAtRecord(41),
    f" {uuid_of_text(7)} ": CutAtRecord(uuid_of_text(7)),
    "msg_01AbC": CutAtMessage("msg_01AbC"),
    "5e12a303:41": Reference("5e12a303", 41),
    f"My title:{uuid_of_text(7)}": Reference("My title", uuid_of_text(7)),
}


@pytest.mark.parametrize("text", PARSED_POSITIONS)
def test_a_position_is_parsed(text: str) -> None:
    """A position is parsed as a line, a uuid, a message id, or a reference that names a session."""
    assert parse_cut(text) == PARSED_POSITIONS[text]


@pytest.mark.parametrize("text", ["", "x", "-1", "5e12a303:", ":", "5e12a303:x", "1" * 20])
def test_an_invalid_position_is_an_error(text: str) -> None:
    """An invalid position raises an error."""
    with pytest.raises(UsageError):
        parse_cut(text)


@st.composite
def generate_conversation(draw: st.DrawFn) -> list[Record]:
    """Generate a conversation of prompts, answers and parallel calls. Some of the calls have no result."""
    rows: list[Record] = [user("begin", uuid="n0", ts=0)]
    for turn in range(draw(st.integers(1, 5))):
        calls = [f"t{turn}.{number}" for number in range(draw(st.integers(0, 3)))]
        answered = [one for one in calls if draw(st.integers(0, 9))]
        blocks = [[call(one)] for one in calls] or [[{"type": "text", "text": "said"}]]
        rows += [assistant(content, uuid="-", message_id=f"msg_{turn}") for content in blocks]
        rows += [user([result(one)], uuid="-") for one in answered]
        rows += [user("asked", uuid="-")] if draw(st.booleans()) else []
    links = (
        {"uuid": f"n{at}", "parentUuid": f"n{at - 1}" if at else None} for at in range(len(rows))
    )
    return [
        {**row, **link, "timestamp": iso_time(at)}
        for at, (row, link) in enumerate(zip(rows, links, strict=True))
    ]


@given(generate_conversation(), st.data())
def test_no_cut_splits_a_call_from_its_result(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Record], data: st.DataObject
) -> None:
    """No cut separates a call from its result, and a cut at a record always keeps the record."""
    transcript = scan_records(tmp_path_factory.mktemp("cut"), rows)
    place = data.draw(st.integers(0, len(rows) - 1))
    answered = {answer for node in transcript.chain for answer in node.answered_call_ids}
    selectors: list[CutSelector] = [
        CutAtRecord(place),
        CutAtRecord(f"n{place}"),
        make_cut_before(place),
    ]
    for selector in selectors:
        try:
            found = cut_conversation(transcript, selector)
        except UsageError:
            continue
        assert found is not None
        row = linearize_chain(found.nodes)
        assert not set(row.open_call_ids) & answered, "only what nobody ever answered may be open"
        assert not set().union(*row.dropped_call_ids.values()) & answered
        if found.shift_direction >= 0 and not isinstance(selector, CutBeforeInstant):
            assert f"n{place}" in {node.uuid for node in found.nodes}
        if isinstance(selector, CutBeforeInstant):
            assert all(node.line_number < place for node in found.nodes)
