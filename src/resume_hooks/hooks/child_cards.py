"""The card (the text shown to the user) for a new child: what was created and how to open the child.

The verb provides the lines about the child's content, as ``facts`` of its outcome. The last line
says in at most 40 columns what to do, because the client shows no more of it while the model is
working. During this time, a card never suggests Ctrl+C, because that key would end the turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import SessionNotFound
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.sessions.session import Session
from resume_hooks.system.copy_result import CopyResult
from resume_hooks.system.invocation import format_remedy
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail

CTRL_C_HINT = "Ctrl+C clears the input box; twice, or in an empty box, it quits"

INTERRUPTION_PREFIX = "[Request interrupted by user"
"""Beginning of the record that a client writes when the user ends a turn with Esc or Ctrl+C."""


def child_card(
    action: str,
    receipt: Receipt,
    copied: CopyResult,
    facts: Sequence[str],
    *,
    is_slash: bool,
    parent: Session | None = None,
) -> str:
    """Return the card for a new child.

    ``action`` says which verb created the child. ``facts`` are lines about its content. ``parent``
    is the parent session, or None if the trigger did not read it.
    """
    if is_slash:
        is_busy = False
    elif parent is not None and parent.path == receipt.parent_file and parent.is_unchanged:
        is_busy = is_turn_unfinished(parent.head_tail)
    else:
        is_busy = is_model_busy(receipt.parent_file)
    # While the model is working, the client shows 40 columns of the last line. Client 2.1.330
    # leaves the last line out if any other line is too wide.
    if is_busy and copied.outcome != "not copied":
        paste_hint = " · paste when done"
    else:
        paste_hint = ""
    repeat_note = f"No new session was created. This is the session from your last {displayed_kind(receipt.kind)}."
    lines = [f"{action}{paste_hint} · {copied.describe('the /resume line')}", f"  {receipt.title}"]
    if not receipt.written:
        lines.append(f"  {repeat_note}")
    lines.append(f"  {receipt.sizes_text}")
    for fact in facts:
        lines.append(f"  {fact}")
    for warning in receipt.warnings:
        lines.append(f"  note: {format_remedy(warning)}")
    if not os.path.isdir(receipt.folder):
        lines.append(f"  note: {receipt.folder} no longer exists: use the first command below")
    lines.append(f"  in Claude Code   {receipt.client_command}")
    if not is_busy:
        lines.append(f"  in a shell       {receipt.shell_command}")
    if not (is_slash or is_busy):
        lines.append(f"  {CTRL_C_HINT}")
    lines.append(_last_card_line(copied, is_slash=is_slash, is_busy=is_busy))
    return "\n".join(lines)


def _last_card_line(copied: CopyResult, *, is_slash: bool, is_busy: bool) -> str:
    """Return the last line of the card, which says how to open the child.

    Most clients put the user's ``>`` prompt back into the input box. Client 2.1.112 does not.
    """
    if copied.outcome != "not copied":
        return paste_line(copied, is_slash=is_slash, is_busy=is_busy)
    if is_busy:
        return "Type /resume once the answer ends."
    if is_slash:
        return "Type the /resume line above."
    return "Text in box? Ctrl+C once, then /resume."


def paste_line(copied: CopyResult, *, is_slash: bool, is_busy: bool) -> str:
    """Return the line of a card that says how to paste the copied text."""
    if copied.outcome == "sent":
        if is_busy:
            return "Sent to the clipboard: paste it later."
        if is_slash:
            return "Sent to the clipboard: paste to check."
        return "Text in box? Ctrl+C once, then paste."
    if is_busy:
        return "Copied: paste it once the answer ends."
    if is_slash:
        return "Copied: paste it, press Enter."
    return "Copied. Text in box? Ctrl+C once, paste."


def is_model_busy(path: str) -> bool:
    """Check whether the model is working: the session's file ends with a prompt or an unanswered call."""
    try:
        return is_turn_unfinished(HeadTail(path))
    except SessionNotFound:
        return False


def is_turn_unfinished(head_tail: HeadTail) -> bool:
    """Check whether the last records of a session are a prompt, an unanswered call or part of an answer."""
    for record in reversed(head_tail.last_records):
        if record.get("isSidechain") is True:
            continue
        if records.get_kind(record) == records.ASSISTANT:
            is_incomplete = records.get_message(record).get(
                "stop_reason"
            ) == records.CALL or not records.join_text_blocks(record)
            return is_incomplete or bool(records.list_calls(record))
        if records.is_prompt(record) or records.list_results(record):
            return True
        if records.join_text_blocks(record).startswith(INTERRUPTION_PREFIX):
            return False
    return False
