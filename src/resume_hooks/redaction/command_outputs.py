"""What a shell printed, behind the command that printed it: in a transcript they stand in records apart.

By itself the output of ``printenv DB_PASSWORD`` is any word. Rules find it behind a prompt and its
command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from resume_hooks.redaction.fixed_places import PRINTING
from resume_hooks.redaction.lazy_patterns import late

_COMMAND = late(rb'"command":\s?"(?=[^"\n]{3,300})' + PRINTING)
"""A call, as it stands in a line, whose command may print a secret."""

_LONGEST_COMMAND = 200  # characters; what is longer is a script, which prints more than one value
_LONGEST_OUTPUT = 2_000  # characters of an output that is looked at
_MOST = 200  # commands that are remembered while their answers are waited for


class CommandOutputs:
    """Takes in the lines of a transcript in order, and pairs outputs with commands that may print secrets."""

    def __init__(self) -> None:
        self._commands: dict[str, str] = {}

    def texts_of(self, line: bytes) -> Iterator[str]:
        """The outputs in a line, each behind its command, as a terminal shows them."""
        if _COMMAND.search(line):
            self._remember(line)
        elif self._commands and b'"tool_use_id"' in line:
            yield from self._answered(line)

    def _remember(self, line: bytes) -> None:
        for block in _blocks(line):
            given = block.get("input")
            if isinstance(given, dict):
                command = given.get("command")
            else:
                command = None
            if (
                isinstance(command, str)
                and isinstance(block.get("id"), str)
                and len(command) <= _LONGEST_COMMAND
            ):
                self._commands[block["id"]] = " ".join(command.split())
        while len(self._commands) > _MOST:
            del self._commands[next(iter(self._commands))]

    def _answered(self, line: bytes) -> Iterator[str]:
        if not any(call.encode() in line for call in self._commands):
            return
        for block in _blocks(line):
            command = self._commands.pop(str(block.get("tool_use_id")), "")
            if command:
                yield f"$ {command}\n{_unquoted(_text(block)[:_LONGEST_OUTPUT])}\n"


def _blocks(line: bytes) -> list[dict[str, Any]]:
    """The blocks of a record's message; none of what is no record."""
    try:
        record = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return []
    if isinstance(record, dict):
        message = record.get("message")
    else:
        message = None
    if isinstance(message, dict):
        content = message.get("content")
    else:
        content = None
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return []


def _text(block: dict[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _unquoted(output: str) -> str:
    """An output of one value without the quotes around it."""
    value = output.strip()
    if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return output
