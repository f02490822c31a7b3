"""Codex rollouts for tests: the real rollouts in the corpus, and functions that write invented lines."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.codex.transcripts.history import HistoryItem, ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import RolloutLine
from resume_hooks.parts.codex.transcripts.meta import format_rollout_name, parse_rollout_name
from tests.needs import corpus_folder

Line = dict[str, Any]

THREAD_ID = "01a00000-0000-7000-8000-000000000001"
OTHER_THREAD_ID = "01a00000-0000-7000-8000-000000000002"
THIRD_THREAD_ID = "01a00000-0000-7000-8000-000000000003"
START_TIME_TEXT = "2026-11-22T09-39-56"


def codex_folder() -> Path:
    """Return the folder for real rollouts, which may not exist."""
    return Path(os.environ.get("RESUME_HOOKS_CODEX") or corpus_folder().parent / "codex")


def codex_rollouts() -> list[Path]:
    """Return all rollouts of the corpus, sorted. Without a corpus, the list is empty."""
    return sorted(codex_folder().rglob("rollout-*.jsonl"))


def find_rollout_in_corpus(rollout_id: str) -> str | None:
    """Return the rollout in the corpus whose file name ends with an id, or None."""
    return next((str(path) for path in codex_rollouts() if path.stem.endswith(rollout_id)), None)


every_rollout = pytest.mark.parametrize(
    "rollout", codex_rollouts(), ids=lambda path: path.stem[-12:]
)
"""Runs a test with each real rollout. Without a corpus, the test is skipped."""


def meta_line(thread_id: str = THREAD_ID, **fields: object) -> Line:
    """Return the first line of a rollout, with these fields replaced."""
    payload = {
        "id": thread_id,
        "timestamp": "2026-11-22T09:39:56.619Z",
        "cwd": "/home/user/proj",
        "originator": "codex_cli_rs",
        "cli_version": "0.169.0",
        "source": "cli",
        "model_provider": "openai",
    }
    return rollout_line("session_meta", payload | fields)


def rollout_line(kind: str, payload: Line, second: int = 0) -> Line:
    """Return a line of a rollout, ``second`` seconds after the start."""
    instant = f"2026-11-22T{9 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"
    return {"timestamp": instant, "type": kind, "payload": payload}


def item_line(kind: str, second: int = 0, **fields: object) -> Line:
    """Return a line that contains an item."""
    return rollout_line("response_item", {"type": kind, **fields}, second)


def message_line(role: str, text: str, second: int = 0) -> Line:
    """Return a line that contains a message."""
    part = "output_text" if role == "assistant" else "input_text"
    return item_line("message", second, role=role, content=[{"type": part, "text": text}])


def call_line(call_id: str, command: str, second: int = 0) -> Line:
    """Return a line that contains a call of a shell command."""
    return item_line(
        "function_call",
        second,
        name="exec_command",
        arguments=json.dumps({"cmd": command}),
        call_id=call_id,
    )


def output_line(
    call_id: str, output: object, second: int = 0, kind: str = "function_call_output"
) -> Line:
    """Return a line that contains a call's output, which is a text or a list of parts."""
    return item_line(kind, second, call_id=call_id, output=output)


def work_lines(call_count: int, output: object, *, has_prompts: bool = False) -> list[Line]:
    """Return the calls ``make 0``, ``make 1`` and so on, each with its output.

    If ``has_prompts`` is true, each call is in its own turn, with a question and an answer.
    """
    lines: list[Line] = []
    for n in range(call_count):
        answer = (
            [{"type": "input_text", "text": f"{n} {output}"}] if has_prompts else f"{n} {output}"
        )
        lines += [message_line("user", f"question {n}", n)] if has_prompts else []
        lines += [call_line(f"c{n}", f"make {n}", n), output_line(f"c{n}", answer, n)]
        lines += [message_line("assistant", f"answer {n}", n)] if has_prompts else []
    return lines


def event_line(kind: str, second: int = 0, **fields: object) -> Line:
    """Return a line with an event."""
    return rollout_line("event_msg", {"type": kind, **fields}, second)


def goal_note_line(note: str, second: int = 0) -> Line:
    """Return the note with which Codex tells the model that the user changed the goal."""
    return message_line(
        "user",
        f'<codex_internal_context source="user_goal">\n{note}\n</codex_internal_context>',
        second,
    )


def goal_event_line(objective: str, status: str, second: int = 0) -> Line:
    """Return the event with which Codex records that the user set or changed the goal."""
    return event_line(
        "thread_goal_updated",
        second,
        threadId=THREAD_ID,
        goal={"objective": objective, "status": status},
    )


def token_count_line(tokens: int, second: int = 0) -> Line:
    """Return the event with the token count of a response."""
    usage = {
        "input_tokens": tokens - 20,
        "cached_input_tokens": 500,
        "output_tokens": 20,
        "total_tokens": tokens,
    }
    return event_line(
        "token_count", second, info={"last_token_usage": usage, "model_context_window": 258_400}
    )


def compaction_line(items: Sequence[Line], second: int = 0) -> Line:
    """Return a compaction after which these items remain."""
    return rollout_line(
        "compacted",
        {"message": "", "replacement_history": [one["payload"] for one in items]},
        second,
    )


LATER_TURN_LINES = [message_line(role, "later") for _ in range(4) for role in ("user", "assistant")]
"""Turns that follow the content that a trim may remove."""


def number_lines(lines: Iterable[Line], start: int = 0) -> list[Line]:
    """Return the lines with ordinal numbers, as in a paginated thread."""
    return [one | {"ordinal": number} for number, one in enumerate(lines, start)]


def write_rollout(
    home: Path, lines: Iterable[Line | bytes], thread_id: str = THREAD_ID, *, rollout_id: str = ""
) -> Path:
    """Write a rollout to a CODEX_HOME and return its path."""
    folder = home / "sessions" / "2026" / "11" / "22"
    folder.mkdir(parents=True, exist_ok=True)
    name = format_rollout_name(thread_id, START_TIME_TEXT)
    path = folder / (name.replace(thread_id, f"{thread_id}_{rollout_id}") if rollout_id else name)
    assert parse_rollout_name(str(path)) is not None
    path.write_bytes(
        b"".join(
            (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines
        )
    )
    return path


def items_for_model(lines: Iterable[RolloutLine]) -> list[HistoryItem]:
    """Return the items that Codex sends to the model for the lines of a thread."""
    history = ThreadHistory()
    for one in lines:
        history.add_line(one)
    return history.items


def damage_lines(lines: list[bytes], random_source: random.Random) -> list[bytes]:
    """Return the lines with random damage."""
    left = list(lines)
    for _ in range(random_source.randrange(1, 8)):
        place = random_source.randrange(len(left))
        raw = left[place]
        cut = random_source.randrange(len(raw) + 1)
        values = [b"null", b"[]", b"{}", b'"x"', b"-1", b"1e999", b"true", b"[" * 900 + b"]" * 900]
        left[place] = random_source.choice(
            [
                raw[:cut],
                raw[:cut] + bytes([random_source.randrange(256)]) + raw[cut + 1 :],
                b"",
                b"\xff\xfe" + raw,
                raw.replace(b'"payload":', b'"payload":%s,"x":' % random_source.choice(values), 1),
                raw.replace(b'"content":', b'"content":%s,"x":' % random_source.choice(values)),
                raw.replace(b'"output":', b'"output":%s,"x":' % random_source.choice(values)),
                raw.replace(
                    b'"type":',
                    b'"type":%s,"x":' % random_source.choice(values),
                    random_source.randrange(1, 3),
                ),
                random_source.choice(lines),
            ]
        )
    return left
