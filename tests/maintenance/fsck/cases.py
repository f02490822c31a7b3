"""Broken sessions, named after what users report; each with what fsck says of it and what a repair keeps.

``kept`` are the words and calls that the repaired child tells the model, as in chain_cases.py; "" where nothing is to
be repaired.
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
    """One defect: the file, and the finding that names it."""

    name: str
    content: bytes
    code: str
    severity: str
    record: int | None
    kept: str


def _u(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return user(name, uuid=name, parent=parent, ts=ts, **extra)


def _a(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return assistant(name, uuid=name, parent=parent, ts=ts, **extra)


def _turn(number: int, parent: str | None, ts: float) -> list[Record]:
    return [_u(f"u{number}", parent, ts), _a(f"a{number}", f"u{number}", ts + 1)]


def _call(name: str, parent: str | None, ts: float) -> Record:
    return tool_use(name, uuid=f"c{name}", parent=parent, ts=ts)


def _result(name: str, ts: float, *, uuid: str = "", parent: str = "") -> Record:
    return tool_result(name, uuid=uuid or f"r{name}", parent=parent or f"c{name}", ts=ts)


def _thought(**block: object) -> list[Record]:
    """Two turns; the second answer is thinking and text, in two records of one message."""
    return [
        *_turn(1, None, 0),
        _u("u2", "a1", 10),
        assistant([{"type": "thinking", **block}], uuid="t2", parent="u2", ts=11, message_id="m"),
        assistant("a2", uuid="a2", parent="t2", ts=12, message_id="m"),
        *_turn(3, "a2", 20),
    ]


def _without_time(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "timestamp"}


FIRST, SECOND, THIRD = _turn(1, None, 0), _turn(2, "a1", 10), _turn(3, "a2", 20)
SOUND = [*FIRST, *SECOND]
BYTES = session_bytes(SOUND)
WHOLE = "u1 a1 u2 a2"
THREE = "u1 a1 u2 a2 u3 a3"
_COMPACTED = [*SOUND, boundary(uuid="b", before="a2", ts=20), summary("sum", uuid="s", parent="b", ts=21)]
_LIST = {"anchorUuid": "s", "uuids": ["u1", "u2", "gone"], "allUuids": []}
_SIGNED = {"type": "thinking", "signature": "c2lnbmVk"}
_BLANK = {"type": "text", "text": " "}


def _case(name: str, records: list[Record], code: str, severity: str, record: int | None, kept: str) -> Case:
    return Case(name, session_bytes(records), code, severity, record, kept)


CASES = [
    _case("bricked by a thinking signature", _thought(thinking="hm"), "thinking-unsigned", "error", 3, THREE),
    _case(
        "bricked by an empty signature", _thought(thinking="hm", signature=""), "thinking-unsigned", "error", 3, THREE
    ),
    _case("empty thinking without a signature", _thought(thinking=""), "thinking-unsigned", "error", 3, THREE),
    _case("thinking without its text", _thought(signature="c2lnbmVk"), "thinking-textless", "error", 3, THREE),
    _case(
        "redacted thinking without its data",
        _thought(type="redacted_thinking"),
        "thinking-redacted-empty",
        "error",
        3,
        THREE,
    ),
    _case(
        "thinking altered by a tool",
        [
            _u("u1", None, 0),
            assistant(
                [{**_SIGNED, "thinking": "a long thought"}, {"type": "text", "text": "a1"}],
                uuid="a1",
                parent="u1",
                ts=1,
            ),
            _u("u2", "a1", 10),
            assistant([{**_SIGNED, "thinking": "cut"}, {"type": "text", "text": "a2"}], uuid="a2", parent="u2", ts=11),
        ],
        "thinking-altered",
        "error",
        1,
        WHOLE,
    ),
    _case(
        "interrupted while it thought",
        [
            *SOUND,
            _u("u3", "a2", 20),
            assistant([{**_SIGNED, "thinking": "hm"}], uuid="t3", parent="u3", ts=21),
            *_turn(4, "t3", 30),
        ],
        "thinking-alone",
        "note",
        5,
        "",
    ),
    _case(
        "tool pair 400: a call that nobody answered",
        [*FIRST, _call("1", "a1", 5), *_turn(2, "c1", 10)],
        "tool-call-unanswered",
        "warning",
        2,
        WHOLE,
    ),
    _case(
        "tool pair 400: a result that nobody asked for",
        [*FIRST, _result("1", 5, parent="a1"), *_turn(2, "r1", 10)],
        "tool-result-orphan",
        "warning",
        2,
        WHOLE,
    ),
    _case(
        "tool pair 400: tool_use ids must be unique",
        [
            *FIRST,
            _call("1", "a1", 3),
            _result("1", 4),
            tool_use("1", uuid="x", parent="r1", ts=5),
            _result("1", 6, uuid="y", parent="x"),
            *_turn(2, "y", 10),
        ],
        "tool-call-repeated",
        "error",
        4,
        "u1 a1 call:1 result:1 u2 a2",
    ),
    _case(
        "tool pair 400: two results for one call",
        [*FIRST, _call("1", "a1", 3), _result("1", 4), _result("1", 5, uuid="y", parent="r1"), *_turn(2, "y", 10)],
        "tool-result-repeated",
        "error",
        4,
        "u1 a1 call:1 result:1 u2 a2",
    ),
    _case(
        "a result behind a later answer",
        [*FIRST, _call("1", "a1", 3), _a("said", "c1", 4), _result("1", 5, parent="said"), *_turn(2, "r1", 10)],
        "tool-result-late",
        "warning",
        4,
        "u1 a1 call:1 result:1 said u2 a2",
    ),
    _case("closed during a tool call", [*FIRST, _call("1", "a1", 5)], "tool-call-open", "note", 2, ""),
    _case(
        "history lost: the parent is not in the file",
        [*FIRST, *_turn(2, "gone", 60)],
        "history-cut",
        "error",
        2,
        WHOLE,
    ),
    _case(
        "history lost behind a hook's progress record",
        [*FIRST, progress(uuid="p", parent="gone", ts=50), *_turn(2, "p", 60)],
        "history-cut",
        "error",
        3,
        WHOLE,
    ),
    _case("a missing parent that is bridged", [*FIRST, *_turn(2, "gone", 3)], "parent-bridged", "warning", 2, WHOLE),
    _case("copied from the middle of a session", _turn(1, "elsewhere", 0), "parent-missing", "warning", 0, "u1 a1"),
    _case(
        "records that hang on each other",
        [_u("u1", "a2", 0), _a("a1", "u1", 1), *SECOND],
        "parent-cycle",
        "error",
        0,
        WHOLE,
    ),
    _case(
        "two records under one id",
        [*SOUND, {**FIRST[1], "message": SECOND[1]["message"]}],
        "uuid-repeated",
        "error",
        4,
        "u1 a2 u2 a2",
    ),
    _case("the same record twice", [*SOUND, FIRST[0]], "record-repeated", "note", 4, ""),
    _case(
        "answers before their prompts",
        [_a("a1", "u1", 1), _u("u1", None, 0), *SECOND],
        "parent-after-child",
        "note",
        0,
        "",
    ),
    _case(
        "resume shows the wrong branch",
        [*SOUND, last_prompt("a2"), *_turn(3, "a1", 30), *_turn(4, "a3", 40)],
        "branch-newer",
        "error",
        8,
        WHOLE,
    ),
    _case(
        "a hint at an abandoned branch",
        [*SOUND, last_prompt("a2"), *_turn(3, "a1", 30)],
        "leaf-hint-old",
        "warning",
        4,
        WHOLE,
    ),
    _case(
        "most of the session is gone after a resume",
        [*SOUND, *THIRD, *_turn(4, "a1", 30)],
        "branch-longer",
        "warning",
        5,
        "u1 a1 u4 a4",
    ),
    _case("a hint at a record that is gone", [*SOUND, last_prompt("gone")], "leaf-hint-dangling", "warning", 4, WHOLE),
    _case(
        "history lost after compaction",
        [
            *SOUND,
            boundary(uuid="b", before="a2", ts=20, preserved=_LIST),
            summary("sum", uuid="s", parent="b", ts=21),
            *_turn(3, "s", 30),
        ],
        "segment-lost",
        "error",
        4,
        "sum u1 u2 u3 a3",
    ),
    _case(
        "full again right after compaction",
        [*_COMPACTED, *_turn(3, "a2", 30)],
        "compaction-undone",
        "warning",
        6,
        THREE,
    ),
    _case(
        "bricked by an empty prompt",
        [*FIRST, user("", uuid="e", parent="a1", ts=5), *_turn(2, "e", 10)],
        "prompt-blank",
        "error",
        2,
        WHOLE,
    ),
    _case(
        "text content blocks must be non-empty",
        [*FIRST, user([{"type": "text", "text": "u2"}, _BLANK], uuid="u2", parent="a1", ts=5), _a("a2", "u2", 6)],
        "text-blank",
        "error",
        2,
        WHOLE,
    ),
    _case(
        "a message without content",
        [*FIRST, user([], uuid="e", parent="a1", ts=5), *_turn(2, "e", 10)],
        "message-empty",
        "warning",
        2,
        WHOLE,
    ),
    _case(
        "a part of an answer without content",
        [
            *SOUND,
            _u("u3", "a2", 20),
            assistant([], uuid="e", parent="u3", ts=21, message_id="m"),
            _a("a3", "e", 22, message_id="m"),
        ],
        "answer-empty",
        "note",
        5,
        THREE,
    ),
    _case(
        "an answer of white space",
        [*SOUND, assistant([_BLANK], uuid="e", parent="a2", ts=15), *_turn(3, "e", 20)],
        "answer-blank",
        "note",
        4,
        "",
    ),
    _case(
        "_.message.content.find is not a function",
        [FIRST[0], {**FIRST[1], "message": {"role": "assistant", "id": "m", "content": "a1"}}, *SECOND],
        "answer-plain-string",
        "error",
        1,
        WHOLE,
    ),
    _case(
        "cannot read properties of null (reading 'content')",
        [*FIRST, {**_u("bad", "a1", 5), "message": None}, *_turn(2, "bad", 10)],
        "message-missing",
        "error",
        2,
        WHOLE,
    ),
    _case(
        "no conversation found: no timestamp at the end",
        [*SOUND[:3], _without_time(SOUND[3])],
        "timestamp-missing-at-end",
        "error",
        3,
        WHOLE,
    ),
    _case(
        "a record without a timestamp",
        [SOUND[0], _without_time(SOUND[1]), *SECOND],
        "timestamp-missing",
        "warning",
        1,
        WHOLE,
    ),
    _case("a clock that was set back", [*FIRST, *_turn(2, "a1", -60)], "timestamp-backward", "note", 2, WHOLE),
    _case(
        "an old client drops the newest turns", [*FIRST, *_turn(2, "a1", -60)], "end-not-latest", "warning", 1, WHOLE
    ),
    _case(
        "first message must be a prompt",
        [_a("a0", None, 0), *_turn(1, "a0", 1)],
        "starts-without-prompt",
        "error",
        0,
        "a0 u1 a1",
    ),
    _case(
        "begins with a tool result", [_result("1", 0), *_turn(1, "r1", 1)], "starts-with-result", "error", 0, "u1 a1"
    ),
    _case(
        "answers that meet",
        [FIRST[0], _a("a1", "u1", 1, tokens=800), _a("more", "a1", 5, tokens=900), *_turn(2, "more", 10)],
        "answer-after-answer",
        "warning",
        2,
        "",
    ),
    _case("a sub-agent inside", [*SOUND, _u("x", None, 15, isSidechain=True)], "sidechain-inline", "note", 4, ""),
    _case(
        "a copy under another id",
        [*FIRST, *[{**r, "sessionId": session_id(8)} for r in SECOND]],
        "session-id-foreign",
        "note",
        2,
        "",
    ),
    Case(
        "conversation gone after a crash: a torn line",
        BYTES + b'{"parentUuid":"a2","type":"us',
        "line-torn",
        "error",
        4,
        WHOLE,
    ),
    Case(
        "conversation gone after a crash: NULs before a record",
        BYTES.replace(b'{"parentUuid":"a1"', b"\0" * 512 + b'{"parentUuid":"a1"'),
        "line-glued",
        "error",
        2,
        WHOLE,
    ),
    Case(
        "conversation gone after a crash: two records on a line",
        BYTES.replace(b'\n{"parentUuid":"a1"', b'{"parentUuid":"a1"'),
        "line-glued",
        "error",
        1,
        WHOLE,
    ),
    Case(
        "an answer and a title on one line, the answer written again",
        BYTES[:-1] + b'{"type":"summary"}\n' + session_bytes(SOUND[3:]),
        "line-glued-aside",
        "warning",
        3,
        WHOLE,
    ),
    Case(
        "a title behind a note",
        BYTES + session_bytes([progress(uuid="p", parent="a2", ts=15)])[:-1] + b'{"type":"summary"}\n',
        "line-glued-aside",
        "warning",
        4,
        WHOLE,
    ),
    Case("a block of NULs", BYTES + b"\0" * 512 + b"\n", "line-nul", "warning", 4, WHOLE),
    Case("a line of garbage", session_bytes([*FIRST, b"<<<<<<< HEAD", *SECOND]), "line-unreadable", "error", 2, WHOLE),
    Case("no line feed at the end", BYTES[:-1], "line-unended", "warning", 3, WHOLE),
    Case(
        "no low surrogate in string",
        BYTES.replace(b'"content":"u2"', b'"content":"u2 \\ud83d"'),
        "surrogate-lone",
        "error",
        2,
        "u1 a1 u2 \ufffd a2",
    ),
    Case(
        "bytes of another encoding",
        BYTES.replace(b'"content":"u2"', b'"content":"u2 \xe9"'),
        "utf8-bad",
        "warning",
        2,
        "u1 a1 u2 \ufffd a2",
    ),
    Case("saved by an editor with a byte order mark", BOM + BYTES, "byte-order-mark", "note", 0, ""),
    Case("saved by an editor of Windows", BYTES.replace(b"\n", b"\r\n"), "line-crlf", "note", 0, ""),
    Case("saved as UTF-16", BYTES.decode().encode("utf-16"), "conversation-empty", "error", None, ""),
]
