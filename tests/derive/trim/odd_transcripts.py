"""Generated transcripts: plausible conversations with all kinds of defects that real transcripts have."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from resume_hooks.derive.trim.options import Options
from resume_hooks.transcripts import placeholders
from resume_hooks.transcripts.lines import BOM
from resume_hooks.transcripts.placeholders import OriginalReference
from tests import builders
from tests.builders import Record

PNG_BYTES = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (900).to_bytes(4, "big") + (800).to_bytes(4, "big")
IMAGE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(PNG_BYTES).decode(),
    },
}
TOOL_NAMES = ("Read", "Bash", "Write", "Edit", "MultiEdit", "AskUserQuestion", "mcp__x__y", "")
SAMPLE_TEXTS = (
    "", "  \n", "short", "word " * 15, "long \u2028 line " * 60, "x" * 120, "y" * 877, "paste " * 500,
    "\U0001f600 emoji " * 90, placeholders.result_placeholder("Read", 9_000, OriginalReference("1a2b3c4d", 7)),
    "head " * 40 + "\n\n[...truncated - original content was 9,999 characters, showing first 200]",
)  # fmt: skip


class TranscriptMaker:
    """Builds a transcript, and keeps the parent and the timestamp for the next record."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.lines: list[Record | bytes] = []
        self.parent: str | None = None
        self.time = 0.0
        self.count = 0
        self.calls: list[str] = []

    def pick(self, *choices: Any) -> Any:
        """Return one of ``choices``."""
        return self.draw(st.sampled_from(choices))

    def pick_text(self) -> str:
        """Return one of ``SAMPLE_TEXTS``, for example an empty, a short or a long text."""
        return str(self.pick(*SAMPLE_TEXTS))

    def add_record(
        self,
        kind: str,
        *,
        parent: str | bool | None = True,
        is_followed: bool = True,
        **fields: Any,
    ) -> str:
        """Add a record to the transcript and return its uuid. With ``is_followed``, the next record follows it."""
        self.count += 1
        uuid = f"{self.count:04d}-uuid"
        self.time += self.pick(1, 1, 1, 0, -30, 0.0004)
        above = self.parent if parent is True else parent or None
        row = builders.chain_record(
            kind,
            uuid=uuid,
            parent=above or None,
            ts=self.time,
            session_id=builders.SESSION,
            **fields,
        )
        if self.draw(st.integers(0, 40)) == 0:
            row.pop(self.pick("timestamp", "entrypoint", "sessionId", "parentUuid"))
        self.lines.append(row)
        if is_followed:
            self.parent = uuid
        return uuid

    def user(self, content: Any, **record_fields: Any) -> str:
        """Add a message of the user."""
        return self.add_record(
            "user", message={"role": "user", "content": content}, **record_fields
        )

    def answer(self, content: Any, message_id: str = "", **record_fields: Any) -> str:
        """Add a message of the model. About a third of the added messages have no token counts."""
        body: Record = {
            "model": "m",
            "id": message_id or f"msg_{self.count}",
            "role": "assistant",
            "content": content,
        }
        if self.pick(True, True, False):
            body["usage"] = builders.usage(2_000 + 400 * self.count)
        return self.add_record("assistant", message=body, **record_fields)

    def call_block(self, call_id: str) -> Record:
        """Return a call of some tool with some input."""
        self.calls.append(call_id)
        tool = self.pick(*TOOL_NAMES)
        path = self.pick("/a", "/b")
        given: Any = {
            "Write": {"file_path": path, "content": self.pick_text()},
            "Edit": {
                "file_path": path,
                "old_string": self.pick_text(),
                "new_string": self.pick_text(),
            },
            "MultiEdit": {
                "file_path": path,
                "edits": [{"old_string": self.pick_text(), "new_string": "n"}],
            },
            "Bash": {"command": self.pick_text()},
            "": "no object",
        }.get(tool, {"file_path": path, "offset": self.pick(None, 5)})
        return (
            builders.call(call_id, tool, **given)
            if isinstance(given, dict)
            else {**builders.call(call_id), "input": given}
        )

    def result_block(self, call_id: str) -> Record:
        """Return a result of the call with some content."""
        content = self.pick("text", "text", "blocks", "image", "none")
        made: Any = {
            "text": self.pick_text(),
            "blocks": [
                {"type": "text", "text": self.pick_text()},
                {"type": "text", "text": "more " * 30},
            ],
            "image": [IMAGE, {"type": "text", "text": "seen"}],
            "none": None,
        }[content]
        return builders.result(call_id, made, is_error=self.pick(False, False, True))

    def make_call_id(self) -> str:
        """Return an unused id for a call."""
        return f"toolu_{self.count}_{len(self.calls)}"


def _add_turn(make: TranscriptMaker) -> None:
    # A blank prompt would be counted as a turn but not copied to a child.
    make.user(make.pick_text().strip() or "asked")
    make.answer([{"type": "text", "text": make.pick_text()}])


def _add_thinking(make: TranscriptMaker) -> None:
    message_id = f"msg_t{make.count}"
    thought = {
        "type": "thinking",
        "thinking": make.pick_text(),
        "signature": make.pick("s" * 40, "s" * 900, ""),
    }
    make.answer([thought], message_id)
    make.answer([{"type": "text", "text": make.pick_text()}], message_id)


def _add_tool_call(make: TranscriptMaker) -> None:
    call = make.make_call_id()
    make.answer([make.call_block(call)])
    make.user(
        [make.result_block(call)], toolUseResult=make.pick({"stdout": "screen " * 40}, "text", None)
    )


def _add_parallel_calls(make: TranscriptMaker) -> None:
    """Add three calls of one answer and their results.

    The results follow their calls one by one, or all calls come first.
    """
    message_id, rows = f"msg_p{make.count}", []
    interleaved = make.pick(True, False)
    for _ in range(3):
        call = make.make_call_id()
        above = make.answer([make.call_block(call)], message_id)
        rows.append((call, above))
        if interleaved:
            make.user([make.result_block(call)], parent=above, is_followed=False)
    for call, above in [] if interleaved else rows:
        make.user([make.result_block(call)], parent=above)


def _add_calls_in_one_record(make: TranscriptMaker) -> None:
    """Add two calls in one record and their results in another. Each record begins with a blank text."""
    calls = [make.make_call_id(), make.make_call_id() + "b"]
    blocks = [make.call_block(call) for call in calls]
    repeated = blocks[: make.pick(0, 0, 1)]
    make.answer([{"type": "text", "text": ""}, *blocks, *repeated])
    make.user([{"type": "text", "text": " "}, *(make.result_block(call) for call in calls)])


def _add_side_records(make: TranscriptMaker) -> None:
    make.add_record("progress", data={"type": "hook_progress"})
    if make.pick(True, False):
        uuid = f"att-{make.count}"
        make.lines.append(
            builders.attachment(make.pick_text() + "a", uuid=uuid, parent=make.parent, ts=make.time)
        )
        make.parent = uuid
    make.add_record("system", subtype="informational", content="note")
    make.user("Caveat: remark", isMeta=True)


def _add_broken_pair(make: TranscriptMaker) -> None:
    trouble = make.pick("orphan", "unanswered", "repeated", "late", "early", "nameless")
    call = make.calls[-1] if make.calls and trouble == "repeated" else make.make_call_id()
    if trouble == "early":
        make.user([make.result_block(call)])
    if trouble != "orphan":
        make.answer([make.call_block(call if trouble != "nameless" else "")])
    if trouble == "late":
        make.user("meanwhile")
        make.answer([{"type": "text", "text": "another answer"}])
    if trouble != "unanswered":
        make.user([make.result_block(call if trouble != "nameless" else "")])


def _add_odd_message(make: TranscriptMaker) -> None:
    trouble = make.pick(
        "string", "empty", "hollow", "numbers", "image", "redacted", "foreign blocks", "nothing"
    )
    if trouble == "string":
        make.answer(make.pick_text())
    elif trouble == "image":
        make.user([IMAGE, {"type": "text", "text": make.pick_text()}])
    elif trouble == "foreign blocks":
        make.user([builders.call("toolu_u"), {"type": "text", "text": "x"}])
        make.answer([builders.result("toolu_a"), {"type": "text", "text": "x"}])
    else:
        content: Any = {
            "empty": [],
            "hollow": [{"type": "thinking", "thinking": "", "signature": ""}],
            "numbers": [1, None],
            "redacted": [
                {"type": "redacted_thinking", "data": "abc"},
                {"type": "text", "text": "y"},
            ],
            "nothing": None,
        }[trouble]
        make.pick(make.user, make.answer)(content)


def _add_compaction(make: TranscriptMaker) -> None:
    before = [
        row["uuid"]
        for row in make.lines
        if isinstance(row, dict) and "uuid" in row and "message" in row
    ]
    kind = make.pick("plain", "segment", "list", "dangling")
    number = len(make.lines)  # The number distinguishes this compaction from the previous one.
    segment = preserved = None
    if kind == "segment" and len(before) > 3:
        segment = {"headUuid": before[-3], "anchorUuid": f"sum-{number}", "tailUuid": before[-1]}
    elif kind in {"list", "dangling"}:
        uuids = [*before[-2:], *(["gone"] if kind == "dangling" else [])]
        preserved = {"anchorUuid": f"sum-{number}", "uuids": uuids, "allUuids": uuids}
    make.time += 1
    bound = f"bound-{number}"
    make.lines += [
        builders.boundary(
            uuid=bound, before=make.parent, ts=make.time, segment=segment, preserved=preserved
        ),
        builders.summary("what was", uuid=f"sum-{number}", parent=bound, ts=make.time),
    ]
    make.parent = f"sum-{number}"


def _add_odd_link(make: TranscriptMaker) -> None:
    trouble = make.pick(
        "dangling", "rewind", "twice", "sidechain", "sent as", "second root", "hint"
    )
    rows = [row for row in make.lines if isinstance(row, dict) and "uuid" in row]
    if trouble == "dangling":
        make.parent = "nowhere"
    elif trouble == "rewind" and rows:
        make.parent = make.draw(st.sampled_from(rows))["uuid"]
    elif trouble == "twice" and rows:
        make.lines.append(make.draw(st.sampled_from(rows)))
    elif trouble == "sidechain":
        # No client writes a record that follows a sub-agent's record.
        make.user("of a sub-agent", isSidechain=True, is_followed=False)
    elif trouble == "sent as":
        make.user("queued", sentAsUuid=f"sent-{make.count}")
        make.parent = f"sent-{make.count - 1}"
    elif trouble == "second root":
        make.parent = None
    elif trouble == "hint" and rows:
        make.lines.append(builders.last_prompt(make.draw(st.sampled_from(rows))["uuid"]))


def _add_metadata(make: TranscriptMaker) -> None:
    at = make.parent or "x"
    make.lines += [
        {"type": "mode", "mode": "normal", "sessionId": builders.SESSION},
        {"type": "tag", "tag": "wip", "sessionId": builders.SESSION},
        {
            "type": "file-history-snapshot",
            "messageId": at,
            "snapshot": {"messageId": at, "trackedFileBackups": {}},
            **make.pick({}, {"sessionId": builders.SESSION}),
        },
        {"type": "summary", "summary": "older", "leafUuid": at},
    ]


def _add_odd_bytes(make: TranscriptMaker) -> None:
    trouble = make.pick("garbage", "blank", "utf8", "surrogate", "spaced")
    if trouble in {"garbage", "blank"}:
        make.lines.append({"garbage": b'{"torn', "blank": b""}[trouble])
        return
    said = {"utf8": "bad MARK utf", "surrogate": "lone \ud83d here", "spaced": "spaced"}[trouble]
    row = builders.user(said, uuid=f"{trouble}-{make.count}", parent=make.parent, ts=make.time + 1)
    bad = trouble == "utf8"
    make.lines.append(
        builders.line(row).replace(b"MARK", b"\xff\xfe") if bad else json.dumps(row).encode()
    )
    make.parent = f"{trouble}-{make.count}"


STEP_FUNCTIONS = (
    _add_turn, _add_turn, _add_thinking, _add_tool_call, _add_tool_call, _add_tool_call, _add_parallel_calls,
    _add_parallel_calls, _add_calls_in_one_record, _add_side_records, _add_broken_pair, _add_odd_message,
    _add_compaction, _add_odd_link, _add_metadata, _add_odd_bytes,
)  # fmt: skip


@st.composite
def generate_transcript(draw: Callable[..., Any]) -> bytes:
    """Generate the bytes of a transcript with unusual records and line ends."""
    make = TranscriptMaker(draw)
    _add_turn(make)
    for step in draw(st.lists(st.sampled_from(STEP_FUNCTIONS), max_size=14)):
        step(make)
    if make.lines and make.pick(True, False, False):
        first = make.lines[0]
        if isinstance(first, dict):
            make.lines[0] = {**first, "entrypoint": "sdk-cli"}
    data = builders.session_bytes(make.lines)
    form = make.pick("plain", "plain", "plain", "crlf", "bom", "torn", "no end")
    if form == "crlf":
        return data.replace(b"\n", b"\r\n")
    if form == "bom":
        return BOM + data
    return data + b'{"type":"us' if form == "torn" else data[:-1] if form == "no end" else data


def generate_trim_options() -> st.SearchStrategy[Options]:
    """Generate options for a trim without a target size."""
    return st.builds(
        Options,
        tools=st.sampled_from([(), (), ("bash",), ("read", "mcp__*")]),
        threshold=st.sampled_from([None, 0, 100, 2_000]),
        keep_recent=st.sampled_from([None, 0, 0, 1]),
        assistant=st.sampled_from([0, 1, 1_000, -1]),
        skip=st.sampled_from([(), ("thinking",), ("results",)]),
        min_savings=st.just(0),
    )
