"""Small transcripts with what a client sends of them on resume: one case a rule of the live chain.

``told`` are the words and calls that reach the model, in order: texts, ``call:ID`` and ``result:ID``. Each case was
run on client 2.1.329 (test_chain_in_client.py runs them again); the tests of the chain need no client.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.builders import (
    SESSION,
    Record,
    assistant,
    attachment,
    boundary,
    call,
    last_prompt,
    progress,
    result,
    summary,
    system,
    tool_result,
    tool_use,
    user,
)


class Case(NamedTuple):
    """One rule: its name, the file's records in order, what the model is told."""

    name: str
    records: list[Record]
    told: str
    chain: str = ""
    """The same by the chain, where the client rearranges or mends it afterwards."""


_PADDING: Record = {"type": "file-history-snapshot", "messageId": "none", "snapshot": {"padding": "x" * 6_000_000}}
_PLAIN = {"role": "assistant", "id": "msg_plain", "content": "plain"}


def _u(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return user(name, uuid=name, parent=parent, ts=ts, **extra)


def _a(name: str, parent: str | None, ts: float, **extra: Any) -> Record:
    return assistant(name, uuid=name, parent=parent, ts=ts, **extra)


def _turn(number: int, parent: str | None, ts: float) -> list[Record]:
    """A prompt ``uN`` and its answer ``aN``."""
    return [_u(f"u{number}", parent, ts), _a(f"a{number}", f"u{number}", ts + 1)]


def _call(name: str, parent: str, ts: float, message_id: str | None = None) -> Record:
    return tool_use(name, uuid=f"c{name}", parent=parent, ts=ts, message_id=message_id)


def _result(name: str, ts: float, parent: str | None = None) -> Record:
    return tool_result(name, uuid=f"r{name}", parent=parent or f"c{name}", ts=ts)


_COMPACTED = [*_turn(1, None, 0), *_turn(2, "a1", 10)]
_AFTER = [boundary(uuid="b", before="a2", ts=20), summary("sum", uuid="s", parent="b", ts=21)]
_KEEP_2 = {"anchorUuid": "s", "headUuid": "u2", "tailUuid": "a2"}
_LIST_2 = {"anchorUuid": "s", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]}


def _kept(**how: Record) -> list[Record]:
    return [boundary(uuid="b", before="a2", ts=20, **how), summary("sum", uuid="s", parent="b", ts=21)]  # type: ignore[arg-type]


CASES = [
    Case("plain", [*_turn(1, None, 0), *_turn(2, "a1", 10)], "u1 a1 u2 a2"),
    Case("newest branch without a hint", [*_turn(1, None, 0), *_turn(2, "a1", 10), *_turn(3, "a1", 20)], "u1 a1 u3 a3"),
    Case(
        "file order beats time without a hint",
        [*_turn(1, None, 0), *_turn(2, "a1", 90), *_turn(3, "a1", 20)],
        "u1 a1 u3 a3",
    ),
    Case(
        "a hint beats a newer branch",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), *_turn(3, "a1", 20), last_prompt("a2")],
        "u1 a1 u2 a2",
    ),
    Case(
        "a hint before a newer branch still holds",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), last_prompt("a2"), *_turn(3, "a1", 20)],
        "u1 a1 u2 a2",
    ),
    Case("a dangling hint is ignored", [*_turn(1, None, 0), *_turn(2, "a1", 10), last_prompt("gone")], "u1 a1 u2 a2"),
    Case(
        "a dangling last hint hides an earlier one",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), last_prompt("a2"), *_turn(3, "a1", 20), last_prompt("gone")],
        "u1 a1 u3 a3",
    ),
    Case(
        "a hint at an ancestor means the last record below it",
        [*_turn(1, None, 0), last_prompt("u1"), *_turn(2, "a1", 10), *_turn(3, "a2", 20)],
        "u1 a1 u2 a2 u3 a3",
    ),
    Case(
        "a hint at an ancestor with another branch last",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), *_turn(3, "a2", 20), last_prompt("a2"), *_turn(4, "a1", 30)],
        "u1 a1 u2 a2",
    ),
    Case(
        "a hint at an ancestor of two branches",
        [*_turn(1, None, 0), last_prompt("a1"), *_turn(2, "a1", 10), *_turn(3, "a1", 20)],
        "u1 a1 u3 a3",
    ),
    Case(
        "an explicit hint is exact",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), {**last_prompt("a1"), "explicit": True}],
        "u1 a1",
    ),
    Case(
        "an explicit hint gives way to what is said after it",
        [*_turn(1, None, 0), *_turn(2, "a1", 10), {**last_prompt("a1"), "explicit": True}, *_turn(3, "a1", 20)],
        "u1 a1 u3 a3",
    ),
    Case("a compaction cuts", [*_COMPACTED, *_AFTER, *_turn(3, "s", 30)], "sum u3 a3"),
    Case(
        "a hint from before a compaction is forgotten",
        [*_COMPACTED, last_prompt("a2"), *_AFTER, *_turn(3, "s", 30)],
        "sum u3 a3",
    ),
    Case(
        "a record after the boundary with a parent before it undoes the compaction",
        [*_COMPACTED, *_AFTER, *_turn(3, "a2", 30)],
        "u1 a1 u2 a2 u3 a3",
    ),
    Case(
        "a walked segment is spliced in",
        [*_COMPACTED, *_kept(segment=_KEEP_2), *_turn(3, "s", 30)],
        "sum u2 a2 u3 a3",
    ),
    Case(
        "a listed segment is spliced in",
        [*_COMPACTED, *_kept(preserved=_LIST_2), *_turn(3, "s", 30)],
        "sum u2 a2 u3 a3",
    ),
    Case(
        "a list with a missing record splices nothing, whatever the segment says",
        [
            *_COMPACTED,
            *_kept(preserved={"anchorUuid": "s", "uuids": ["u2", "gone"]}, segment=_KEEP_2),
            *_turn(3, "s", 30),
        ],
        "sum u3 a3",
    ),
    Case(
        "a segment that can't be walked splices nothing",
        [*_COMPACTED, *_kept(segment={**_KEEP_2, "headUuid": "gone"}), *_turn(3, "s", 30)],
        "sum u3 a3",
    ),
    Case(
        "what hangs before a spliced compaction hangs on its segment",
        [*_COMPACTED, *_kept(segment=_KEEP_2), *_turn(3, "a1", 30)],
        "sum u2 a2 u3 a3",
    ),
    Case(
        "a segment of an earlier compaction is cut with it",
        [
            *_COMPACTED,
            *_kept(segment=_KEEP_2),
            *_turn(3, "s", 30),
            boundary(uuid="b2", before="a3", ts=40),
            summary("sum2", uuid="s2", parent="b2", ts=41),
            *_turn(4, "s2", 50),
        ],
        "sum2 u4 a4",
    ),
    Case(
        "parallel calls come back with their results",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _call("2", "c1", 2, "m"),
            _result("1", 3),
            _result("2", 4),
            _a("a1", "r2", 5),
        ],
        "u1 call:1 call:2 result:1 result:2 a1",
    ),
    Case(
        "parallel calls that hang side by side",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _call("2", "u1", 2, "m"),
            _call("3", "u1", 3, "m"),
            _result("1", 4),
            _result("2", 5),
            _result("3", 6),
            _a("a1", "r3", 7),
        ],
        "u1 call:3 call:1 call:2 result:1 result:2 result:3 a1",
    ),
    Case(
        "parallel calls streamed between their results",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _result("1", 2),
            _call("2", "c1", 3, "m"),
            _result("2", 4),
            _a("a1", "r2", 5),
        ],
        "u1 call:1 call:2 result:1 result:2 a1",
        "u1 call:1 result:1 call:2 result:2 a1",
    ),
    Case(
        "results of parallel calls come in the order of the file",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "msg"),
            _call("2", "c1", 2, "msg"),
            _call("3", "c2", 3, "msg"),
            _result("2", 5),
            _result("1", 5),
            _result("3", 5),
            _a("a1", "r3", 6),
        ],
        "u1 call:1 call:2 call:3 result:2 result:1 result:3 a1",
    ),
    Case(
        "a message id that is shared across a boundary pulls an old call back in",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _result("1", 2),
            boundary(uuid="b", before="r1", ts=20),
            summary("sum", uuid="s", parent="b", ts=21),
            _call("2", "s", 22, "m"),
            _result("2", 23),
            _a("a2", "r2", 24),
        ],
        "sum call:2 call:1 result:1 result:2 a2",
    ),
    Case(
        "progress records are stepped over",
        [
            _u("u1", None, 0),
            progress(uuid="p1", parent="u1", ts=1),
            progress(uuid="p2", parent="p1", ts=1.5),
            _a("a1", "p2", 2),
            *_turn(2, "a1", 10),
        ],
        "u1 a1 u2 a2",
    ),
    Case("a missing parent is bridged within five seconds", [*_turn(1, None, 0), *_turn(2, "gone", 6)], "u1 a1 u2 a2"),
    Case("a missing parent farther back is not bridged", [*_turn(1, None, 0), *_turn(2, "gone", 6.001)], "u2 a2"),
    Case(
        "of two records at the same instant the first bridges",
        [_u("u1", None, 0), _a("a1", "u1", 1), _a("x1", "u1", 1), *_turn(2, "gone", 3)],
        "u1 a1 u2 a2",
    ),
    Case(
        "a cycle is bridged by time, then ends",
        [_u("u1", "a2", 0), _a("a1", "u1", 1), _u("u2", "a1", 10), _a("a2", "u2", 11)],
        "u1 a1 u2 a2",
    ),
    Case(
        "a duplicate uuid: the last record wins",
        [_u("u1", None, 0), _a("a1", "u1", 1), {**_u("u1", None, 0), "message": {"role": "user", "content": "twice"}}],
        "twice a1",
    ),
    Case(
        "parents after their children",
        [_a("a2", "u2", 11), _u("u2", "a1", 10), _a("a1", "u1", 1), _u("u1", None, 0)],
        "u1 a1 u2 a2",
    ),
    Case(
        "inline sub-agent records are left out",
        [
            *_turn(1, None, 0),
            _u("x1", None, 2, isSidechain=True),
            _a("x2", "x1", 3, isSidechain=True),
            *_turn(2, "a1", 10),
            _a("x3", "x2", 12, isSidechain=True),
        ],
        "u1 a1 u2 a2",
    ),
    Case(
        "a hint at an aside means the message above it",
        [
            *_turn(1, None, 0),
            attachment("", uuid="t1", parent="a1", ts=2, attachment={"type": "hook_system_message", "content": "note"}),
            system("turn_duration", uuid="t2", parent="t1", ts=3),
            *_turn(2, "u1", 10),
            last_prompt("t2"),
        ],
        "u1 a1",
    ),
    Case(
        "a hint at a result of a batch that went on with another result",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _call("2", "c1", 2, "m"),
            _result("1", 3),
            last_prompt("r1"),
            _result("2", 4),
            _a("a1", "r2", 5),
        ],
        "u1 call:1 call:2 result:1 result:2 a1",
    ),
    Case(
        "a hint at a result of calls side by side stays",
        [
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _call("2", "u1", 2, "m"),
            _result("1", 3),
            last_prompt("r1"),
            _result("2", 4),
            _a("a1", "r2", 5),
        ],
        "u1 call:1 call:2 result:1 result:2",
    ),
    Case(
        "an emptied conversation",
        [*_turn(1, None, 0), {"type": "last-prompt", "leafUuid": None, "explicit": True, "sessionId": SESSION}],
        "",
    ),
    Case(
        "an emptied conversation that went on",
        [
            *_turn(1, None, 0),
            {"type": "last-prompt", "leafUuid": None, "explicit": True, "sessionId": SESSION},
            *_turn(2, None, 10),
        ],
        "u2 a2",
    ),
    Case(
        "a hint with answers below it is void beside a kept segment",
        [
            *_COMPACTED,
            *_kept(segment=_KEEP_2),
            *_turn(3, "s", 30),
            *_turn(4, "a3", 40),
            last_prompt("a3"),
            *_turn(5, "u3", 50),
        ],
        "sum u2 a2 u3 u5 a5",
    ),
    Case(
        "an inline sub-agent's records can be parents",
        [_u("x1", None, 0, isSidechain=True), _a("x2", "x1", 1, isSidechain=True), *_turn(2, "x2", 10)],
        "x1 x2 u2 a2",
    ),
    Case(
        "a boundary of a sub-agent makes hints forgotten too",
        [
            *_turn(1, None, 0),
            *_turn(2, "a1", 10),
            last_prompt("a2"),
            boundary(uuid="b", ts=11, isSidechain=True),
            *_turn(3, "a1", 20),
        ],
        "u1 a1 u3 a3",
    ),
    Case(
        "over 5 MiB what a compaction dropped stays dropped",
        [_PADDING, *_COMPACTED, *_AFTER, *_turn(3, "a2", 30)],
        "u3 a3",
    ),
    Case(
        "over 5 MiB a near parent is bridged by what is left",
        [_PADDING, *_COMPACTED, *_AFTER, *_turn(3, "a2", 23)],
        "sum u3 a3",
    ),
    Case(
        "over 5 MiB a kept segment is still spliced in",
        [_PADDING, *_COMPACTED, *_kept(segment=_KEEP_2), *_turn(3, "s", 30)],
        "sum u2 a2 u3 a3",
    ),
    Case(
        "over 5 MiB a shared message id pulls nothing in",
        [
            _PADDING,
            _u("u1", None, 0),
            _call("1", "u1", 1, "m"),
            _result("1", 2),
            boundary(uuid="b", before="r1", ts=20),
            summary("sum", uuid="s", parent="b", ts=21),
            _call("2", "s", 22, "m"),
            _result("2", 23),
            _a("a2", "r2", 24),
        ],
        "sum call:2 result:2 a2",
    ),
    Case(
        "a progress record after its child is unknown to it",
        [
            _u("u1", None, 0),
            _a("a1", "p1", 20),
            progress(uuid="p1", parent="u1", ts=10),
            *_turn(2, "a1", 30),
        ],
        "a1 u2 a2",
    ),
    Case(
        "a queued prompt goes by the id that it was sent under",
        [*_turn(1, None, 0), {**_u("u2", "a1", 2), "sentAsUuid": "sent"}, _a("a2", "sent", 3)],
        "u1 a1 u2 a2",
    ),
    Case(
        "an answer in the form of a plain string",
        [_u("u1", None, 0), {**_a("a1", "u1", 1), "message": _PLAIN}, *_turn(2, "a1", 5)],
        "u1 plain u2 a2",
    ),
    Case(
        "an answer of white space alone is stepped over",
        [_u("u1", None, 0), {**_a("a1", "u1", 1), "message": {**_PLAIN, "content": " "}}, *_turn(2, "a1", 5)],
        "u1 u2 a2",
    ),
    Case(
        "a user record without a message is stepped over",
        [_u("u1", None, 0), {**_u("bad", "u1", 1), "message": None}, _a("a1", "bad", 2)],
        "u1 a1",
    ),
    Case(
        "a call that is open at the end is kept",
        [_u("u1", None, 0), _call("1", "u1", 1)],
        "u1 call:1 result:1",
        "u1 call:1",
    ),
    Case(
        "one record with two calls and one answer",
        [
            _u("u1", None, 0),
            assistant([call("1"), call("2")], uuid="c", parent="u1", ts=1),
            user([result("1"), result("2")], uuid="r", parent="c", ts=2),
            _a("a1", "r", 3),
        ],
        "u1 call:1 call:2 result:1 result:2 a1",
    ),
]
