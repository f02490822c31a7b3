"""Read the client's API requests: their messages, and whether a request is a turn."""

from __future__ import annotations

from typing import Any

Request = dict[str, Any]

# The client's request for a prompt suggestion looks like a turn and has tools, too. The last
# message of this request begins with these words.
_SUGGESTION_BEGINNING = "[SUGGESTION MODE:"


def message_text(message: Request) -> str:
    """Return the text of a request's message: its blocks, including tool results, joined by newlines."""
    content = message.get("content", "")
    return (
        content if isinstance(content, str) else "\n".join(_block_text(block) for block in content)
    )


def _block_text(block: dict[str, Any]) -> str:
    if block.get("type") == "tool_result":
        return message_text(block)
    return str(block.get("text", ""))


def conversation_of_request(request: Request) -> list[tuple[str, str]]:
    """Return the role and text of each user and assistant message of a request.

    Client 2.1.329 puts ``system`` messages between these messages. They are left out.
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

    A turn always has tools, except in a client started with ``--tools ""``. Client 2.1.112 also
    sends requests for titles and topics, which have no tools. The last message of a request for a
    prompt suggestion begins with ``[SUGGESTION MODE:``.
    """
    return bool(request.get("tools")) and _SUGGESTION_BEGINNING not in last_user_text(request)
