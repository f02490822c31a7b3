"""Owns the reading of the client's API requests: their messages, and whether they are turns."""

from __future__ import annotations

from typing import Any

Request = dict[str, Any]

# Opens the last message of the client's prompt-suggestion call, which looks like a turn, tools and
# all.
_SUGGESTION = "[SUGGESTION MODE:"


def message_text(message: Request) -> str:
    """Return the text of one message of a request, blocks joined by newlines, including tool results."""
    content = message.get("content", "")
    return (
        content if isinstance(content, str) else "\n".join(_block_text(block) for block in content)
    )


def _block_text(block: dict[str, Any]) -> str:
    if block.get("type") == "tool_result":
        return message_text(block)
    return str(block.get("text", ""))


def conversation_of_request(request: Request) -> list[tuple[str, str]]:
    """Return (role, text) of each user and model message.

    Client 2.1.329 puts `system` messages among them.
    """
    messages = [
        message for message in request.get("messages", []) if message.get("role") != "system"
    ]
    return [(message["role"], message_text(message)) for message in messages]


def last_user_text(request: Request) -> str:
    """Return the text of the last user message, or "" if there is none."""
    return next(
        (text for role, text in reversed(conversation_of_request(request)) if role == "user"), ""
    )


def is_turn_request(request: Request) -> bool:
    """Check whether a request is a turn of the conversation.

    Seen on 2.1.112: the client asks for titles and topics without tools, a turn always has them
    (unless the client was started with `--tools ""`); a prompt suggestion carries a marker in
    its last message.
    """
    return bool(request.get("tools")) and _SUGGESTION not in last_user_text(request)
