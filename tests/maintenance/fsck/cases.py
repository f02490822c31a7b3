"""Sessions with and without defects, named after users' reports.

Each has the finding that ``fsck`` reports. ``repaired_outline`` contains the texts and calls that
the repaired child sends, as in chain_cases.py. It is "" if no repair is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resume_hooks.transcripts.lines import BOM
from tests.builders import (
    Record,
    assistant,
    boundary,
    last_prompt,
    progress,
    session_bytes,
    session_id,
    summary,
    tool_result,
    tool_use,
    user,
)


class Case(NamedTuple):
    """A session with or without a defect, and the finding that ``fsck`` reports for it."""

    name: str
    content: bytes
    defect_code: str
    severity: str
    record_number: int | None
    repaired_outline: str


def _prompt_record(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return user(name, uuid=name, parent=parent, ts=ts, **extra)


def _answer_record(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return assistant(name, uuid=name, parent=parent, ts=ts, **extra)


def _turn_records(number: int, parent: str | None, ts: float) -> list[Record]:
    return [
        _prompt_record(f"u{number}", parent, ts),
        _answer_record(f"a{number}", f"u{number}", ts + 1),
    ]


def _call_record(name: str, parent: str | None, ts: float) -> Record:
    return tool_use(name, uuid=f"c{name}", parent=parent, ts=ts)


def _result_record(name: str, ts: float, *, uuid: str = "", parent: str = "") -> Record:
    return tool_result(name, uuid=uuid or f"r{name}", parent=parent or f"c{name}", ts=ts)


def _turns_with_thinking(**block: object) -> list[Record]:
    """Return two turns. The second answer has thinking and text, in two records of one message."""
    return [
        *_turn_records(1, None, 0),
        _prompt_record("u2", "a1", 10),
        assistant([{"type": "thinking", **block}], uuid="t2", parent="u2", ts=11, message_id="m"),
        assistant("a2", uuid="a2", parent="t2", ts=12, message_id="m"),
        *_turn_records(3, "a2", 20),
    ]


def _remove_time(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "timestamp"}


FIRST_TURN, SECOND_TURN, THIRD_TURN = (
    _turn_records(1, None, 0),
    _turn_records(2, "a1", 10),
    _turn_records(3, "a2", 20),
)
VALID_RECORDS = [*FIRST_TURN, *SECOND_TURN]
VALID_CONTENT = session_bytes(VALID_RECORDS)
TWO_TURNS_OUTLINE = "u1 a1 u2 a2"
THREE_TURNS_OUTLINE = "u1 a1 u2 a2 u3 a3"
_COMPACTED_RECORDS = [
    *VALID_RECORDS,
    boundary(uuid="b", before="a2", ts=20),
    summary("sum", uuid="s", parent="b", ts=21),
]
_KEPT_MESSAGES = {"anchorUuid": "s", "uuids": ["u1", "u2", "gone"], "allUuids": []}
_SIGNED_THINKING = {"type": "thinking", "signature": "c2lnbmVk"}
_BLANK_TEXT = {"type": "text", "text": " "}


def _make_case(name: str, defect: str, repaired_outline: str, records: list[Record]) -> Case:
    return _make_case_of_bytes(name, defect, repaired_outline, session_bytes(records))


def _make_case_of_bytes(name: str, defect: str, repaired_outline: str, content: bytes) -> Case:
    """Return a case. ``defect`` has its severity, code and record, for example "error line-torn in 4"."""
    severity, code, *place = defect.replace(" in ", " ").split()
    return Case(name, content, code, severity, int(place[0]) if place else None, repaired_outline)


CASES = [
    _make_case(
        "bricked by a thinking signature",
        "error thinking-unsigned in 3",
        THREE_TURNS_OUTLINE,
        _turns_with_thinking(thinking="hm"),
    ),
    _make_case(
        "bricked by an empty signature",
        "error thinking-unsigned in 3",
        THREE_TURNS_OUTLINE,
        _turns_with_thinking(thinking="hm", signature=""),
    ),
    _make_case(
        "empty thinking without a signature",
        "error thinking-unsigned in 3",
        THREE_TURNS_OUTLINE,
        _turns_with_thinking(thinking=""),
    ),
    _make_case(
        "thinking without its text",
        "error thinking-textless in 3",
        THREE_TURNS_OUTLINE,
        _turns_with_thinking(signature="c2lnbmVk"),
    ),
    _make_case(
        "redacted thinking without its data",
        "error thinking-redacted-empty in 3",
        THREE_TURNS_OUTLINE,
        _turns_with_thinking(type="redacted_thinking"),
    ),
    _make_case(
        "thinking altered by a tool",
        "error thinking-altered in 1",
        TWO_TURNS_OUTLINE,
        [
            _prompt_record("u1", None, 0),
            assistant(
                [
                    {**_SIGNED_THINKING, "thinking": "a long thought"},
                    {"type": "text", "text": "a1"},
                ],
                uuid="a1",
                parent="u1",
                ts=1,
            ),
            _prompt_record("u2", "a1", 10),
            assistant(
                [{**_SIGNED_THINKING, "thinking": "cut"}, {"type": "text", "text": "a2"}],
                uuid="a2",
                parent="u2",
                ts=11,
            ),
        ],
    ),
    _make_case(
        "interrupted while it thought",
        "note thinking-alone in 5",
        "",
        [
            *VALID_RECORDS,
            _prompt_record("u3", "a2", 20),
            assistant([{**_SIGNED_THINKING, "thinking": "hm"}], uuid="t3", parent="u3", ts=21),
            *_turn_records(4, "t3", 30),
        ],
    ),
    _make_case(
        "tool pair 400: a call that nobody answered",
        "warning tool-call-unanswered in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, _call_record("1", "a1", 5), *_turn_records(2, "c1", 10)],
    ),
    _make_case(
        "tool pair 400: a result that nobody asked for",
        "warning tool-result-orphan in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, _result_record("1", 5, parent="a1"), *_turn_records(2, "r1", 10)],
    ),
    _make_case(
        "tool pair 400: tool_use ids must be unique",
        "error tool-call-repeated in 4",
        "u1 a1 call:1 result:1 u2 a2",
        [
            *FIRST_TURN,
            _call_record("1", "a1", 3),
            _result_record("1", 4),
            tool_use("1", uuid="x", parent="r1", ts=5),
            _result_record("1", 6, uuid="y", parent="x"),
            *_turn_records(2, "y", 10),
        ],
    ),
    _make_case(
        "tool pair 400: two results for one call",
        "error tool-result-repeated in 4",
        "u1 a1 call:1 result:1 u2 a2",
        [
            *FIRST_TURN,
            _call_record("1", "a1", 3),
            _result_record("1", 4),
            _result_record("1", 5, uuid="y", parent="r1"),
            *_turn_records(2, "y", 10),
        ],
    ),
    _make_case(
        "a result behind a later answer",
        "warning tool-result-late in 4",
        "u1 a1 call:1 result:1 said u2 a2",
        [
            *FIRST_TURN,
            _call_record("1", "a1", 3),
            _answer_record("said", "c1", 4),
            _result_record("1", 5, parent="said"),
            *_turn_records(2, "r1", 10),
        ],
    ),
    _make_case(
        "closed during a tool call",
        "note tool-call-open in 2",
        "",
        [*FIRST_TURN, _call_record("1", "a1", 5)],
    ),
    _make_case(
        "history lost: the parent is not in the file",
        "error history-cut in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, *_turn_records(2, "gone", 60)],
    ),
    _make_case(
        "history lost behind a hook's progress record",
        "error history-cut in 3",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, progress(uuid="p", parent="gone", ts=50), *_turn_records(2, "p", 60)],
    ),
    _make_case(
        "a missing parent that is bridged",
        "warning parent-bridged in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, *_turn_records(2, "gone", 3)],
    ),
    _make_case(
        "copied from the middle of a session",
        "warning parent-missing in 0",
        "u1 a1",
        _turn_records(1, "elsewhere", 0),
    ),
    _make_case(
        "records that hang on each other",
        "error parent-cycle in 0",
        TWO_TURNS_OUTLINE,
        [_prompt_record("u1", "a2", 0), _answer_record("a1", "u1", 1), *SECOND_TURN],
    ),
    _make_case(
        "two records under one id",
        "error uuid-repeated in 4",
        "u1 a2 u2 a2",
        [*VALID_RECORDS, {**FIRST_TURN[1], "message": SECOND_TURN[1]["message"]}],
    ),
    _make_case(
        "the same record twice", "note record-repeated in 4", "", [*VALID_RECORDS, FIRST_TURN[0]]
    ),
    _make_case(
        "answers before their prompts",
        "note parent-after-child in 0",
        "",
        [_answer_record("a1", "u1", 1), _prompt_record("u1", None, 0), *SECOND_TURN],
    ),
    _make_case(
        "resume shows the wrong branch",
        "error branch-newer in 8",
        TWO_TURNS_OUTLINE,
        [
            *VALID_RECORDS,
            last_prompt("a2"),
            *_turn_records(3, "a1", 30),
            *_turn_records(4, "a3", 40),
        ],
    ),
    _make_case(
        "a hint at an abandoned branch",
        "warning leaf-hint-old in 4",
        TWO_TURNS_OUTLINE,
        [*VALID_RECORDS, last_prompt("a2"), *_turn_records(3, "a1", 30)],
    ),
    _make_case(
        "most of the session is gone after a resume",
        "warning branch-longer in 5",
        "u1 a1 u4 a4",
        [*VALID_RECORDS, *THIRD_TURN, *_turn_records(4, "a1", 30)],
    ),
    _make_case(
        "a hint at a record that is gone",
        "warning leaf-hint-dangling in 4",
        TWO_TURNS_OUTLINE,
        [*VALID_RECORDS, last_prompt("gone")],
    ),
    _make_case(
        "history lost after compaction",
        "error segment-lost in 4",
        "sum u1 u2 u3 a3",
        [
            *VALID_RECORDS,
            boundary(uuid="b", before="a2", ts=20, preserved=_KEPT_MESSAGES),
            summary("sum", uuid="s", parent="b", ts=21),
            *_turn_records(3, "s", 30),
        ],
    ),
    _make_case(
        "full again right after compaction",
        "warning compaction-undone in 6",
        THREE_TURNS_OUTLINE,
        [*_COMPACTED_RECORDS, *_turn_records(3, "a2", 30)],
    ),
    _make_case(
        "bricked by an empty prompt",
        "error prompt-blank in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, user("", uuid="e", parent="a1", ts=5), *_turn_records(2, "e", 10)],
    ),
    _make_case(
        "text content blocks must be non-empty",
        "error text-blank in 2",
        TWO_TURNS_OUTLINE,
        [
            *FIRST_TURN,
            user([{"type": "text", "text": "u2"}, _BLANK_TEXT], uuid="u2", parent="a1", ts=5),
            _answer_record("a2", "u2", 6),
        ],
    ),
    _make_case(
        "a message without content",
        "warning message-empty in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, user([], uuid="e", parent="a1", ts=5), *_turn_records(2, "e", 10)],
    ),
    _make_case(
        "a part of an answer without content",
        "note answer-empty in 5",
        THREE_TURNS_OUTLINE,
        [
            *VALID_RECORDS,
            _prompt_record("u3", "a2", 20),
            assistant([], uuid="e", parent="u3", ts=21, message_id="m"),
            _answer_record("a3", "e", 22, message_id="m"),
        ],
    ),
    _make_case(
        "an answer of white space",
        "note answer-blank in 4",
        "",
        [
            *VALID_RECORDS,
            assistant([_BLANK_TEXT], uuid="e", parent="a2", ts=15),
            *_turn_records(3, "e", 20),
        ],
    ),
    _make_case(
        "_.message.content.find is not a function",
        "error answer-plain-string in 1",
        TWO_TURNS_OUTLINE,
        [
            FIRST_TURN[0],
            {**FIRST_TURN[1], "message": {"role": "assistant", "id": "m", "content": "a1"}},
            *SECOND_TURN,
        ],
    ),
    _make_case(
        "cannot read properties of null (reading 'content')",
        "error message-missing in 2",
        TWO_TURNS_OUTLINE,
        [
            *FIRST_TURN,
            {**_prompt_record("bad", "a1", 5), "message": None},
            *_turn_records(2, "bad", 10),
        ],
    ),
    _make_case(
        "no conversation found: no timestamp at the end",
        "error timestamp-missing-at-end in 3",
        TWO_TURNS_OUTLINE,
        [*VALID_RECORDS[:3], _remove_time(VALID_RECORDS[3])],
    ),
    _make_case(
        "a record without a timestamp",
        "warning timestamp-missing in 1",
        TWO_TURNS_OUTLINE,
        [VALID_RECORDS[0], _remove_time(VALID_RECORDS[1]), *SECOND_TURN],
    ),
    _make_case(
        "a clock that was set back",
        "note timestamp-backward in 2",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, *_turn_records(2, "a1", -60)],
    ),
    _make_case(
        "an old client drops the newest turns",
        "warning end-not-latest in 1",
        TWO_TURNS_OUTLINE,
        [*FIRST_TURN, *_turn_records(2, "a1", -60)],
    ),
    _make_case(
        "first message must be a prompt",
        "error starts-without-prompt in 0",
        "a0 u1 a1",
        [_answer_record("a0", None, 0), *_turn_records(1, "a0", 1)],
    ),
    _make_case(
        "begins with a tool result",
        "error starts-with-result in 0",
        "u1 a1",
        [_result_record("1", 0), *_turn_records(1, "r1", 1)],
    ),
    _make_case(
        "answers that meet",
        "warning answer-after-answer in 2",
        "",
        [
            FIRST_TURN[0],
            _answer_record("a1", "u1", 1, tokens=800),
            _answer_record("more", "a1", 5, tokens=900),
            *_turn_records(2, "more", 10),
        ],
    ),
    _make_case(
        "a sub-agent inside",
        "note sidechain-inline in 4",
        "",
        [*VALID_RECORDS, _prompt_record("x", None, 15, isSidechain=True)],
    ),
    _make_case(
        "a copy under another id",
        "note session-id-foreign in 2",
        "",
        [*FIRST_TURN, *[{**r, "sessionId": session_id(8)} for r in SECOND_TURN]],
    ),
    _make_case_of_bytes(
        "conversation gone after a crash: a torn line",
        "error line-torn in 4",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT + b'{"parentUuid":"a2","type":"us',
    ),
    _make_case_of_bytes(
        "conversation gone after a crash: NULs before a record",
        "error line-glued in 2",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT.replace(b'{"parentUuid":"a1"', b"\0" * 512 + b'{"parentUuid":"a1"'),
    ),
    _make_case_of_bytes(
        "conversation gone after a crash: two records on a line",
        "error line-glued in 1",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT.replace(b'\n{"parentUuid":"a1"', b'{"parentUuid":"a1"'),
    ),
    _make_case_of_bytes(
        "conversation gone after a crash: a torn record before the next one",
        "warning line-fragment in 2",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT.replace(
            b'{"parentUuid":"a1"', b'{"parentUuid":"a0","type":"us{"parentUuid":"a1"'
        ),
    ),
    _make_case_of_bytes(
        "an answer and a title on one line, the answer written again",
        "warning line-glued-aside in 3",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT[:-1] + b'{"type":"summary"}\n' + session_bytes(VALID_RECORDS[3:]),
    ),
    _make_case_of_bytes(
        "a title behind a note",
        "warning line-glued-aside in 4",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT
        + session_bytes([progress(uuid="p", parent="a2", ts=15)])[:-1]
        + b'{"type":"summary"}\n',
    ),
    _make_case_of_bytes(
        "a block of NULs",
        "warning line-nul in 4",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT + b"\0" * 512 + b"\n",
    ),
    _make_case_of_bytes(
        "a line of garbage",
        "error line-unreadable in 2",
        TWO_TURNS_OUTLINE,
        session_bytes([*FIRST_TURN, b"<<<<<<< HEAD", *SECOND_TURN]),
    ),
    _make_case_of_bytes(
        "no line feed at the end",
        "warning line-unended in 3",
        TWO_TURNS_OUTLINE,
        VALID_CONTENT[:-1],
    ),
    _make_case_of_bytes(
        "no low surrogate in string",
        "error surrogate-lone in 2",
        "u1 a1 u2 \ufffd a2",
        VALID_CONTENT.replace(b'"content":"u2"', b'"content":"u2 \\ud83d"'),
    ),
    _make_case_of_bytes(
        "bytes of another encoding",
        "warning utf8-bad in 2",
        "u1 a1 u2 \ufffd a2",
        VALID_CONTENT.replace(b'"content":"u2"', b'"content":"u2 \xe9"'),
    ),
    _make_case_of_bytes(
        "saved by an editor with a byte order mark",
        "note byte-order-mark in 0",
        "",
        BOM + VALID_CONTENT,
    ),
    _make_case_of_bytes(
        "saved by an editor of Windows",
        "note line-crlf in 0",
        "",
        VALID_CONTENT.replace(b"\n", b"\r\n"),
    ),
    _make_case_of_bytes(
        "saved as UTF-16", "error conversation-empty", "", VALID_CONTENT.decode().encode("utf-16")
    ),
]
