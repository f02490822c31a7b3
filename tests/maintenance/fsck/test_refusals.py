"""Tests of the API's errors that are caused by the form of a conversation.

The messages are those of the API or of the client.
"""

from __future__ import annotations

import pytest

from resume_hooks.maintenance.fsck.messages import defects_causing_error
from tests.maintenance.fsck.cases import CASES

CODES_BY_MESSAGE = {
    "messages.1.content.0: Invalid `signature` in `thinking` block": "thinking-unsigned",
    "messages.1.content.0.thinking.signature: Field required": "thinking-unsigned",
    "messages.7.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    " These blocks must remain as they were in the original response.": "thinking-altered",
    "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.": "thinking-altered",
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message.": "tool-call-unanswered",
    "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.": "tool-result-orphan",
    "messages.5.content.1: `tool_use` ids must be unique": "tool-call-repeated",
    "messages.4.content.1: each tool_use must have a single result. Found multiple": "tool-result-repeated",
    "due to tool use concurrency issues. Run /rewind to recover the conversation.": "tool-call-unanswered",
    "orphaned tool_result in conversation history.": "tool-result-orphan",
    "duplicate tool_use ID in conversation history.": "tool-call-repeated",
    "messages: text content blocks must be non-empty": "text-blank",
    "messages.2: user messages must have non-empty content": "prompt-blank",
    "The request body is not valid JSON: no low surrogate in string: line 1 column 7": "surrogate-lone",
    "messages: first message must use the `user` role": "starts-without-prompt",
}

MESSAGES_WITHOUT_DEFECT = (
    "API Error: 529 Overloaded",
    "API Error: 429 This request would exceed your account's rate limit",
    "API Error: Connection error.",
    "API Error: 500 Internal server error while reading thinking blocks",
    "API Error: 400 max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens",
    "API Error: 400 `max_tokens` must be greater than `thinking.budget_tokens`.",
    "API Error: 400 thinking.type: adaptive thinking is not supported on this model",
    "prompt is too long: 215040 tokens > 200000 maximum",
    "Credit balance is too low",
    "",
)


@pytest.mark.parametrize(
    ("message", "code"), CODES_BY_MESSAGE.items(), ids=list(CODES_BY_MESSAGE.values())
)
def test_an_error_message_is_traced_to_its_defect(message: str, code: str) -> None:
    """An error message of the API or the client is traced to the defect that caused it."""
    assert code in {kind.code for kind in defects_causing_error(f"API Error: 400 {message}")}
    document = f'API Error: 400 {{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}'
    assert defects_causing_error(document) == defects_causing_error(f"API Error: 400 {message}")
    assert all(kind.is_repairable for kind in defects_causing_error(document))


@pytest.mark.parametrize("message", MESSAGES_WITHOUT_DEFECT)
def test_other_errors_are_traced_to_no_defect(message: str) -> None:
    """An error about a limit, the network or a parameter of a request is traced to no defect."""
    assert defects_causing_error(message) == frozenset()


def test_every_defect_behind_an_error_message_has_a_case() -> None:
    """For every defect that can cause an API error, there is a case that tests its repair."""
    named = {
        kind.code
        for message in CODES_BY_MESSAGE
        for kind in defects_causing_error(f"400 {message}")
    }
    assert named <= {case.defect_code for case in CASES if case.repaired_outline}
