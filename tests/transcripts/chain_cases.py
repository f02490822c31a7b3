"""Small transcripts, and the messages that the client sends when it resumes each transcript.

``expected_messages`` lists what reaches the model, in order: each text as it is, each call as
``call:ID``, and each result as ``result:ID``. Client 2.1.329 sent these messages.
test_chain_in_client.py checks this with a client; the other tests need no client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    """A transcript for one rule of the live chain, and the messages that the client sends for it."""

    name: str
    records: list[Record]
    expected_messages: str
    expected_chain_messages: str = ""
    """The messages of the chain that this plugin finds, if they differ from ``expected_messages``.

    They differ if the client reorders or repairs messages.
    """


_PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "none",
    "snapshot": {"padding": "x" * 6_000_000},
}
_PLAIN_ANSWER = {"role": "assistant", "id": "msg_plain", "content": "plain"}
_KEPT_SECOND_TURN = {"anchorUuid": "s", "headUuid": "u2", "tailUuid": "a2"}
_FIELDS_BY_FORM: dict[str, dict[str, Any]] = {
    "walk": {"segment": _KEPT_SECOND_TURN},
    "list": {"preserved": {"anchorUuid": "s", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]}},
    "short-list": {
        "preserved": {"anchorUuid": "s", "uuids": ["u2", "gone"]},
        "segment": _KEPT_SECOND_TURN,
    },
    "gone": {"segment": {**_KEPT_SECOND_TURN, "headUuid": "gone"}},
    "plain": {"message": _PLAIN_ANSWER},
    "blank": {"message": {**_PLAIN_ANSWER, "content": " "}},
    "none": {"message": None},
    "twice": {"message": {"role": "user", "content": "twice"}},
    "sent": {"sentAsUuid": "sent"},
}
"""Further fields of a record, by the word that follows ``=``.

Most of these fields replace a message's content, or say which messages a boundary kept.
"""

_WORD_PATTERN = re.compile(r"(?:(\w):)?(\w+)(~?)(?:/(\w+))?(?:<(\w*))?(?:@([\d.]+))?(?:=([\w-]+))?")
_HINT_PATTERN = re.compile(r"hint(!?):(\w+)")


def _parse_records(record_words: str) -> Iterator[Record]:
    """Yield the records that ``record_words`` describe.

    Each word is ``KIND:UUID~/MESSAGE<PARENT@SECOND=FORM``, in which only the uuid is required. By
    default, the kind is the first letter of the uuid, the parent is the previous record, and the
    time is one second later. A result's parent is its call. Kinds: u prompt, a answer, c call, r
    result, b boundary, s summary, p progress, t attachment, n note. ``~`` marks a sub-agent's
    record. ``hint:UUID`` is a last-prompt record, and ``!`` marks an explicit one.
    """
    before, at = None, -1.0
    for word in record_words.split():
        if hint := _HINT_PATTERN.fullmatch(word):
            yield {**last_prompt(hint[2]), **({"explicit": True} if hint[1] else {})}
            continue
        if word in _RECORDS_BY_WORD:
            yield _RECORDS_BY_WORD[word]
            continue
        found = _WORD_PATTERN.fullmatch(word)
        assert found is not None, word
        kind, uuid, side, message, parent, second, form = found.groups()
        kind = kind or uuid[0]
        at = float(second) if second else at + 1
        hangs = (f"c{uuid[1:]}" if kind == "r" else before) if parent is None else parent or None
        links: dict[str, Any] = {"uuid": uuid, "ts": int(at) if at.is_integer() else at}
        extra = {**({"isSidechain": True} if side else {}), **_FIELDS_BY_FORM.get(form, {})}
        yield _make_record(kind, links, hangs, before, message, extra)
        before = uuid


def _make_record(
    kind: str,
    links: dict[str, Any],
    parent: str | None,
    previous_uuid: str | None,
    message_id: str | None,
    extra: dict[str, Any],
) -> Record:
    uuid: str = links["uuid"]
    if kind == "b":
        return boundary(
            **links, before=None if extra.get("isSidechain") else previous_uuid, **extra
        )
    links["parent"] = parent
    made: dict[str, Callable[[], Record]] = {
        "u": lambda: user(uuid, **links),
        "a": lambda: assistant(uuid, **links),
        "c": lambda: tool_use(uuid[1:], **links, message_id=message_id),
        "r": lambda: tool_result(uuid[1:], **links),
        "s": lambda: summary(f"sum{uuid[1:]}", **links),
        "p": lambda: progress(**links),
        "t": lambda: attachment(
            "", **links, attachment={"type": "hook_system_message", "content": "note"}
        ),
        "n": lambda: system("turn_duration", **links),
    }
    return {**made[kind](), **extra}


_RECORDS_BY_WORD: dict[str, Record] = {
    "padding": _PADDING_RECORD,
    "emptied": {"type": "last-prompt", "leafUuid": None, "explicit": True, "sessionId": SESSION},
    "two-calls": assistant([call("1"), call("2")], uuid="c", parent="u1", ts=1),
    "two-results": user([result("1"), result("2")], uuid="r", parent="c", ts=2),
}

_TWO_TURNS = "u1 a1 u2@10 a2"
_TWO_TURNS_COMPACTED = f"{_TWO_TURNS} b@20 s"
_SHARED_MESSAGE = "u1 c1/m r1 b@20 s c2/m r2 a2"

CHAIN_CASES = [
    Case(name, list(_parse_records(words)), *expected)
    for name, words, *expected in (
        ("plain", _TWO_TURNS, "u1 a1 u2 a2"),
        ("newest branch without a hint", f"{_TWO_TURNS} u3<a1@20 a3", "u1 a1 u3 a3"),
        ("file order beats time without a hint", "u1 a1 u2@90 a2 u3<a1@20 a3", "u1 a1 u3 a3"),
        ("a hint beats a newer branch", f"{_TWO_TURNS} u3<a1@20 a3 hint:a2", "u1 a1 u2 a2"),
        (
            "a hint before a newer branch still holds",
            f"{_TWO_TURNS} hint:a2 u3<a1@20 a3",
            "u1 a1 u2 a2",
        ),
        ("a dangling hint is ignored", f"{_TWO_TURNS} hint:gone", "u1 a1 u2 a2"),
        (
            "a dangling last hint hides an earlier one",
            f"{_TWO_TURNS} hint:a2 u3<a1@20 a3 hint:gone",
            "u1 a1 u3 a3",
        ),
        (
            "a hint at an ancestor means the last record below it",
            "u1 a1 hint:u1 u2@10 a2 u3@20 a3",
            "u1 a1 u2 a2 u3 a3",
        ),
        (
            "a hint at an ancestor with another branch last",
            f"{_TWO_TURNS} u3@20 a3 hint:a2 u4<a1@30 a4",
            "u1 a1 u2 a2",
        ),
        (
            "a hint at an ancestor of two branches",
            "u1 a1 hint:a1 u2@10 a2 u3<a1@20 a3",
            "u1 a1 u3 a3",
        ),
        ("an explicit hint is exact", f"{_TWO_TURNS} hint!:a1", "u1 a1"),
        (
            "an explicit hint gives way to what is said after it",
            f"{_TWO_TURNS} hint!:a1 u3<a1@20 a3",
            "u1 a1 u3 a3",
        ),
        ("a compaction cuts", f"{_TWO_TURNS_COMPACTED} u3@30 a3", "sum u3 a3"),
        (
            "a hint from before a compaction is forgotten",
            f"{_TWO_TURNS} hint:a2 b@20 s u3@30 a3",
            "sum u3 a3",
        ),
        (
            "a record after the boundary with a parent before it undoes the compaction",
            f"{_TWO_TURNS_COMPACTED} u3<a2@30 a3",
            "u1 a1 u2 a2 u3 a3",
        ),
        ("a walked segment is spliced in", f"{_TWO_TURNS} b@20=walk s u3@30 a3", "sum u2 a2 u3 a3"),
        ("a listed segment is spliced in", f"{_TWO_TURNS} b@20=list s u3@30 a3", "sum u2 a2 u3 a3"),
        (
            "a list with a missing record splices nothing, whatever the segment says",
            f"{_TWO_TURNS} b@20=short-list s u3@30 a3",
            "sum u3 a3",
        ),
        (
            "a segment that can't be walked splices nothing",
            f"{_TWO_TURNS} b@20=gone s u3@30 a3",
            "sum u3 a3",
        ),
        (
            "what hangs before a spliced compaction hangs on its segment",
            f"{_TWO_TURNS} b@20=walk s u3<a1@30 a3",
            "sum u2 a2 u3 a3",
        ),
        (
            "a segment of an earlier compaction is cut with it",
            f"{_TWO_TURNS} b@20=walk s u3@30 a3 b2@40 s2 u4@50 a4",
            "sum2 u4 a4",
        ),
        (
            "parallel calls come back with their results",
            "u1 c1/m c2/m r1 r2 a1",
            "u1 call:1 call:2 result:1 result:2 a1",
        ),
        (
            "parallel calls that hang side by side",
            "u1 c1/m c2/m<u1 c3/m<u1 r1 r2 r3 a1",
            "u1 call:3 call:1 call:2 result:1 result:2 result:3 a1",
        ),
        (
            "parallel calls streamed between their results",
            "u1 c1/m r1 c2/m<c1 r2 a1",
            "u1 call:1 call:2 result:1 result:2 a1",
            "u1 call:1 result:1 call:2 result:2 a1",
        ),
        (
            "results of parallel calls come in the order of the file",
            "u1 c1/msg c2/msg c3/msg r2@5 r1@5 r3@5 a1",
            "u1 call:1 call:2 call:3 result:2 result:1 result:3 a1",
        ),
        (
            "a message id that is shared across a boundary pulls an old call back in",
            _SHARED_MESSAGE,
            "sum call:2 call:1 result:1 result:2 a2",
        ),
        ("progress records are stepped over", "u1 p1 p2@1.5 a1@2 u2@10 a2", "u1 a1 u2 a2"),
        ("a missing parent is bridged within five seconds", "u1 a1 u2<gone@6 a2", "u1 a1 u2 a2"),
        ("a missing parent farther back is not bridged", "u1 a1 u2<gone@6.001 a2", "u2 a2"),
        (
            "of two records at the same instant the first bridges",
            "u1 a1 a:x1<u1@1 u2<gone@3 a2",
            "u1 a1 u2 a2",
        ),
        ("a cycle is bridged by time, then ends", "u1<a2 a1 u2@10 a2", "u1 a1 u2 a2"),
        ("a duplicate uuid: the last record wins", "u1 a1 u1<@0=twice", "twice a1"),
        ("parents after their children", "a2<u2@11 u2<a1@10 a1<u1@1 u1<@0", "u1 a1 u2 a2"),
        (
            "inline sub-agent records are left out",
            "u1 a1 u:x1~< a:x2~ u2<a1@10 a2 a:x3~<x2",
            "u1 a1 u2 a2",
        ),
        (
            "a hint at an aside means the message above it",
            "u1 a1 t1 n:t2 u2<u1@10 a2 hint:t2",
            "u1 a1",
        ),
        (
            "a hint at a result of a batch that went on with another result",
            "u1 c1/m c2/m r1 hint:r1 r2 a1",
            "u1 call:1 call:2 result:1 result:2 a1",
        ),
        (
            "a hint at a result of calls side by side stays",
            "u1 c1/m c2/m<u1 r1 hint:r1 r2 a1",
            "u1 call:1 call:2 result:1 result:2",
        ),
        ("an emptied conversation", "u1 a1 emptied", ""),
        ("an emptied conversation that went on", "u1 a1 emptied u2<@10 a2", "u2 a2"),
        (
            "a hint with answers below it is void beside a kept segment",
            f"{_TWO_TURNS} b@20=walk s u3@30 a3 u4@40 a4 hint:a3 u5<u3@50 a5",
            "sum u2 a2 u3 u5 a5",
        ),
        ("an inline sub-agent's records can be parents", "u:x1~ a:x2~ u2@10 a2", "x1 x2 u2 a2"),
        (
            "a boundary of a sub-agent makes hints forgotten too",
            f"{_TWO_TURNS} hint:a2 b~@11 u3<a1@20 a3",
            "u1 a1 u3 a3",
        ),
        (
            "over 5 MiB what a compaction dropped stays dropped",
            f"padding {_TWO_TURNS_COMPACTED} u3<a2@30 a3",
            "u3 a3",
        ),
        (
            "over 5 MiB a near parent is bridged by what is left",
            f"padding {_TWO_TURNS_COMPACTED} u3<a2@23 a3",
            "sum u3 a3",
        ),
        (
            "over 5 MiB a kept segment is still spliced in",
            f"padding {_TWO_TURNS} b@20=walk s u3@30 a3",
            "sum u2 a2 u3 a3",
        ),
        (
            "over 5 MiB a shared message id pulls nothing in",
            f"padding {_SHARED_MESSAGE}",
            "sum call:2 result:2 a2",
        ),
        (
            "a progress record after its child is unknown to it",
            "u1 a1<p1@20 p1<u1@10 u2<a1@30 a2",
            "a1 u2 a2",
        ),
        (
            "a queued prompt goes by the id that it was sent under",
            "u1 a1 u2=sent a2<sent",
            "u1 a1 u2 a2",
        ),
        ("an answer in the form of a plain string", "u1 a1=plain u2@5 a2", "u1 plain u2 a2"),
        ("an answer of white space alone is stepped over", "u1 a1=blank u2@5 a2", "u1 u2 a2"),
        ("a user record without a message is stepped over", "u1 u:bad=none a1", "u1 a1"),
        ("a call that is open at the end is kept", "u1 c1", "u1 call:1 result:1", "u1 call:1"),
        (
            "one record with two calls and one answer",
            "u1 two-calls two-results a1<r@3",
            "u1 call:1 call:2 result:1 result:2 a1",
        ),
    )
]
