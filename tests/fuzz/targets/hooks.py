"""Fuzz targets for hooks: ordinary prompts pass, and every reply is valid for the client."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from resume_hooks.hooks import context_notice, fallback, hook_replies, prompt, session
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.sessions.link_log import links_file
from tests.builders import CWD, SESSION, ConfigHome, conversation, write_session
from tests.fuzz.draws import Draws
from tests.fuzz.material import SESSION_IDS, draw_transcript, write_session_file
from tests.fuzz.targets.target import Target, TryCase
from tests.fuzz.targets.texts import FORBIDDEN_CHARACTERS

EVENT_FIELDS = (
    "session_id",
    "transcript_path",
    "cwd",
    "prompt",
    "source",
    "reason",
    "hook_event_name",
    "agent_id",
    "model",
)
TYPED_TRIGGERS = (
    ">", ">session", ">help", ">resume", ">lineage", ">handoff go on", ">trim", ">trim yes",
    ">mark x", ">back x",
    ">search parser", ">recall", "/resume-hooks:handoff", "/resume-hooks:session",
    ">session\n/clear", ">unknown",
    " >resume", "a > b", "/clear",
    "/resume-hooks:", ">handoff " + "x" * 30_000, ">Resume", ">resume\x00",
)  # fmt: skip


class _FakeStream:
    """Replaces the standard input and output, as far as hooks use them."""

    def __init__(self, raw: bytes) -> None:
        self.buffer = io.BytesIO(raw)


def run_hook_main(main: Callable[[], None], raw: bytes) -> bytes:
    """Run a hook with this input, and return its output."""
    old = sys.stdin, sys.stdout
    printed = _FakeStream(b"")
    sys.stdin, sys.stdout = _FakeStream(raw), printed
    try:
        main()
    finally:
        sys.stdin, sys.stdout = old
    return printed.buffer.getvalue()


def draw_event(draws: Draws, valid_fields: dict[str, Any]) -> bytes:
    """Return an event of the client with some changed fields, or invalid bytes."""
    kind = draws.number_below(12)
    if kind == 11:
        return draws.take_bytes(80)
    made = dict(valid_fields)
    for _ in range(draws.number_below(3)):
        made[draws.pick(EVENT_FIELDS)] = draws.json(1) if draws.flip_coin() else draws.text()
    raw = json.dumps(made, ensure_ascii=draws.flip_coin()).encode("utf-8", "surrogatepass")
    return raw[: draws.number_below(len(raw) + 1)] if kind == 10 else raw


def _write_home_with_session(home: ConfigHome) -> str:
    os.environ.update(home.environ, RESUME_HOOKS_CLIPBOARD="none", CLAUDE_PID="4711")
    return str(write_session(home.project(), SESSION, conversation(3)))


def make_prompt_check(home: ConfigHome) -> TryCase:
    """Return a check that a hook answers triggers with one valid block, and nothing else.

    For other prompts, the hook prints nothing. The reason in the block is a short text without
    control characters.
    """
    path = _write_home_with_session(home)

    def try_case(draws: Draws) -> None:
        if draws.flip_coin(3):
            write_session_file(home.project(), SESSION, draw_transcript(draws, 8))
        text = draws.pick(TYPED_TRIGGERS) + (draws.text() if draws.flip_coin(3) else "")
        raw = draw_event(
            draws, {"session_id": SESSION, "transcript_path": path, "cwd": CWD, "prompt": text}
        )
        found = hook_replies.parse_event(raw)
        trigger = recognise_trigger(hook_replies.text_field(found, "prompt")) if found else None
        for main in (prompt.main, fallback.main):
            out = run_hook_main(main, raw)
            assert (trigger is None) == (out == b"")
            if trigger is not None:
                _assert_blocking_reply(out)
        for file in home.project().iterdir():
            if file.name != f"{SESSION}.jsonl" and file.is_file():
                file.unlink()

    return try_case


def _assert_blocking_reply(out: bytes) -> None:
    value = json.loads(out)
    reason = value["reason"]
    assert value["decision"] == "block"
    assert reason
    assert len(reason.encode("utf-16-le")) // 2 <= hook_replies.MAX_REASON_UTF16_UNITS
    assert not FORBIDDEN_CHARACTERS & set(reason)
    assert "It changed none of your sessions or files" not in reason, reason


def make_start_and_end_check(home: ConfigHome) -> TryCase:
    """Return a check that hooks for starts and ends print nothing or one JSON object.

    The starts and ends are those of sessions and turns. Every link that the hooks record is valid.
    """
    path = _write_home_with_session(home)
    events = ("SessionStart", "SessionEnd", "Stop")
    words = ("clear", "startup", "resume", "compact", "fork", "logout", "")

    def try_case(draws: Draws) -> None:
        file = links_file(home.where)
        if draws.flip_coin(20) and os.path.exists(file):
            os.unlink(file)
        if draws.flip_coin(4):
            write_session_file(home.project(), SESSION, draw_transcript(draws, 8))
        said = {
            "source": draws.pick(words),
            "reason": draws.pick(words),
            "hook_event_name": draws.pick(events),
        }
        valid_fields = {
            "session_id": draws.pick(SESSION_IDS),
            "transcript_path": path,
            "cwd": CWD,
            **said,
        }
        raw = draw_event(draws, valid_fields)
        for main in (session.main, context_notice.main):
            out = run_hook_main(main, raw)
            assert out == b"" or isinstance(json.loads(out), dict)
        if os.path.exists(file):
            with open(file, "rb") as stream:
                rows = [json.loads(row) for row in stream]
            assert all(row["child_id"] != row["parent_id"] for row in rows if "child_id" in row)

    return try_case


TARGETS = (
    Target("prompts", 500, make_prompt_check),
    Target("starts and ends", 500, make_start_and_end_check),
)
