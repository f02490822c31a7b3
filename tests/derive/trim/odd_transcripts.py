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


def _add_turn(maker: TranscriptMaker) -> None:
    # A blank prompt would be counted as a turn but not copied to a child.
    maker.user(maker.pick_text().strip() or "asked")
    maker.answer([{"type": "text", "text": maker.pick_text()}])


def _add_thinking(maker: TranscriptMaker) -> None:
    message_id = f"msg_t{maker.count}"
    thought = {
        "type": "thinking",
        "thinking": maker.pick_text(),
        "signature": maker.pick("s" * 40, "s" * 900, ""),
    }
    maker.answer([thought], message_id)
    maker.answer([{"type": "text", "text": maker.pick_text()}], message_id)


def _add_tool_call(maker: TranscriptMaker) -> None:
    call = maker.make_call_id()
    maker.answer([maker.call_block(call)])
    maker.user(
        [maker.result_block(call)],
        toolUseResult=maker.pick({"stdout": "screen " * 40}, "text", None),
    )


def _add_parallel_calls(maker: TranscriptMaker) -> None:
    """Add three calls of one answer and their results.

    The results follow their calls one by one, or all calls come first.
    """
    message_id, rows = f"msg_p{maker.count}", []
    interleaved = maker.pick(True, False)
    for _ in range(3):
        call = maker.make_call_id()
        above = maker.answer([maker.call_block(call)], message_id)
        rows.append((call, above))
        if interleaved:
            maker.user([maker.result_block(call)], parent=above, is_followed=False)
    for call, above in [] if interleaved else rows:
        maker.user([maker.result_block(call)], parent=above)


def _add_calls_in_one_record(maker: TranscriptMaker) -> None:
    """Add two calls in one record and their results in another. Each record begins with a blank text."""
    calls = [maker.make_call_id(), maker.make_call_id() + "b"]
    blocks = [maker.call_block(call) for call in calls]
    repeated = blocks[: maker.pick(0, 0, 1)]
    maker.answer([{"type": "text", "text": ""}, *blocks, *repeated])
    maker.user([{"type": "text", "text": " "}, *(maker.result_block(call) for call in calls)])


def _add_side_records(maker: TranscriptMaker) -> None:
    maker.add_record("progress", data={"type": "hook_progress"})
    if maker.pick(True, False):
        uuid = f"att-{maker.count}"
        maker.lines.append(
            builders.attachment(
                maker.pick_text() + "a", uuid=uuid, parent=maker.parent, ts=maker.time
            )
        )
        maker.parent = uuid
    maker.add_record("system", subtype="informational", content="note")
    maker.user("Caveat: remark", isMeta=True)


def _add_broken_pair(maker: TranscriptMaker) -> None:
    trouble = maker.pick("orphan", "unanswered", "repeated", "late", "early", "nameless")
    call = maker.calls[-1] if maker.calls and trouble == "repeated" else maker.make_call_id()
    if trouble == "early":
        maker.user([maker.result_block(call)])
    if trouble != "orphan":
        maker.answer([maker.call_block(call if trouble != "nameless" else "")])
    if trouble == "late":
        maker.user("meanwhile")
        maker.answer([{"type": "text", "text": "another answer"}])
    if trouble != "unanswered":
        maker.user([maker.result_block(call if trouble != "nameless" else "")])


def _add_odd_message(maker: TranscriptMaker) -> None:
    trouble = maker.pick(
        "string", "empty", "hollow", "numbers", "image", "redacted", "foreign blocks", "nothing"
    )
    if trouble == "string":
        maker.answer(maker.pick_text())
    elif trouble == "image":
        maker.user([IMAGE, {"type": "text", "text": maker.pick_text()}])
    elif trouble == "foreign blocks":
        maker.user([builders.call("toolu_u"), {"type": "text", "text": "x"}])
        maker.answer([builders.result("toolu_a"), {"type": "text", "text": "x"}])
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
        maker.pick(maker.user, maker.answer)(content)


def _add_compaction(maker: TranscriptMaker) -> None:
    before = [
        row["uuid"]
        for row in maker.lines
        if isinstance(row, dict) and "uuid" in row and "message" in row
    ]
    kind = maker.pick("plain", "segment", "list", "dangling")
    number = len(maker.lines)  # The number distinguishes this compaction from the previous one.
    segment = preserved = None
    if kind == "segment" and len(before) > 3:
        segment = {"headUuid": before[-3], "anchorUuid": f"sum-{number}", "tailUuid": before[-1]}
    elif kind in {"list", "dangling"}:
        uuids = [*before[-2:], *(["gone"] if kind == "dangling" else [])]
        preserved = {"anchorUuid": f"sum-{number}", "uuids": uuids, "allUuids": uuids}
    maker.time += 1
    bound = f"bound-{number}"
    maker.lines += [
        builders.boundary(
            uuid=bound, before=maker.parent, ts=maker.time, segment=segment, preserved=preserved
        ),
        builders.summary("what was", uuid=f"sum-{number}", parent=bound, ts=maker.time),
    ]
    maker.parent = f"sum-{number}"


def _add_odd_link(maker: TranscriptMaker) -> None:
    trouble = maker.pick(
        "dangling", "rewind", "twice", "sidechain", "sent as", "second root", "hint"
    )
    rows = [row for row in maker.lines if isinstance(row, dict) and "uuid" in row]
    if trouble == "dangling":
        maker.parent = "nowhere"
    elif trouble == "rewind" and rows:
        maker.parent = maker.draw(st.sampled_from(rows))["uuid"]
    elif trouble == "twice" and rows:
        maker.lines.append(maker.draw(st.sampled_from(rows)))
    elif trouble == "sidechain":
        # No client writes a record that follows a sub-agent's record.
        maker.user("of a sub-agent", isSidechain=True, is_followed=False)
    elif trouble == "sent as":
        maker.user("queued", sentAsUuid=f"sent-{maker.count}")
        maker.parent = f"sent-{maker.count - 1}"
    elif trouble == "second root":
        maker.parent = None
    elif trouble == "hint" and rows:
        maker.lines.append(builders.last_prompt(maker.draw(st.sampled_from(rows))["uuid"]))


def _add_metadata(maker: TranscriptMaker) -> None:
    at = maker.parent or "x"
    maker.lines += [
        {"type": "mode", "mode": "normal", "sessionId": builders.SESSION},
        {"type": "tag", "tag": "wip", "sessionId": builders.SESSION},
        {
            "type": "file-history-snapshot",
            "messageId": at,
            "snapshot": {"messageId": at, "trackedFileBackups": {}},
            **maker.pick({}, {"sessionId": builders.SESSION}),
        },
        {"type": "summary", "summary": "older", "leafUuid": at},
    ]


def _add_odd_bytes(maker: TranscriptMaker) -> None:
    trouble = maker.pick("garbage", "blank", "utf8", "surrogate", "spaced")
    if trouble in {"garbage", "blank"}:
        maker.lines.append({"garbage": b'{"torn', "blank": b""}[trouble])
        return
    said = {"utf8": "bad MARK utf", "surrogate": "lone \ud83d here", "spaced": "spaced"}[trouble]
    row = builders.user(
        said, uuid=f"{trouble}-{maker.count}", parent=maker.parent, ts=maker.time + 1
    )
    bad = trouble == "utf8"
    maker.lines.append(
        builders.line(row).replace(b"MARK", b"\xff\xfe") if bad else json.dumps(row).encode()
    )
    maker.parent = f"{trouble}-{maker.count}"


STEP_FUNCTIONS = (
    _add_turn, _add_turn, _add_thinking, _add_tool_call, _add_tool_call, _add_tool_call, _add_parallel_calls,
    _add_parallel_calls, _add_calls_in_one_record, _add_side_records, _add_broken_pair, _add_odd_message,
    _add_compaction, _add_odd_link, _add_metadata, _add_odd_bytes,
)  # fmt: skip


@st.composite
def generate_transcript(draw: Callable[..., Any]) -> bytes:
    """Generate the bytes of a transcript with unusual records and line ends."""
    maker = TranscriptMaker(draw)
    _add_turn(maker)
    for step in draw(st.lists(st.sampled_from(STEP_FUNCTIONS), max_size=14)):
        step(maker)
    if maker.lines and maker.pick(True, False, False):
        first = maker.lines[0]
        if isinstance(first, dict):
            maker.lines[0] = {**first, "entrypoint": "sdk-cli"}
    data = builders.session_bytes(maker.lines)
    form = maker.pick("plain", "plain", "plain", "crlf", "bom", "torn", "no end")
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
