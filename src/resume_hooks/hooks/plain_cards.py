"""The cards of triggers that need no transcript.

Standard library, Python 3.9, because the fallback also shows these cards.
"""

from __future__ import annotations

from resume_hooks.hooks.triggers import BARE_SIGN, ROWS, TYPED_SIGN, Trigger
from resume_hooks.system.copy_result import CopyResult

CARD_COLUMNS = 80  # the width of a card in columns
MAX_TITLE_COLUMNS = 68  # the maximum width of a title in a card in columns


HELP_TEXT = """\
resume-hooks · {how}
{rows}
In a shell: {command}{plain}"""


def help_card(command: str, trigger: Trigger) -> str:
    """``>help``: every trigger in ten rows, with the current names if the module runs.

    ``command`` is the shell command for the help.

    A hook cannot check for the module, so ``>help`` uses the names that every client knows.
    """
    if trigger.sign != TYPED_SIGN:
        space_hint = ""
    else:
        space_hint = "\nA space before > sends a plain prompt."
    if trigger.sign == BARE_SIGN:
        commands = []
        for trigger_row in ROWS.values():
            if trigger_row.command:
                commands.append(
                    (f"/{trigger_row.command} {trigger_row.argument}", trigger_row.about)
                )
        heading, rows = "what to type", [f"{name:<22} {about}" for name, about in commands]
    else:
        heading = f"type one behind {trigger.own_sign} at the very start of a prompt"
        rows = [trigger_row.row for trigger_row in ROWS.values() if trigger_row.row]
    return HELP_TEXT.format(
        how=heading, rows="\n".join(f"  {row}" for row in rows), command=command, plain=space_hint
    )


NOTHING_CHANGED_TEXT = "Nothing was changed."

MAX_SCREEN_CHARACTERS = 1_500  # characters of a text that fit on a small screen

# below this percentage of the window, no way to shrink the session is suggested
MIN_PERCENT_TO_SHRINK = 20


def usage_card(trigger: Trigger) -> str:
    """Return the usage of a trigger that takes any words."""
    row = ROWS[trigger.verb]
    usage = f"{trigger.name(trigger.verb)} {row.argument}".rstrip()
    return f"resume-hooks · {usage}\n  {row.about}\n\n{NOTHING_CHANGED_TEXT}"


def refusal_card(reason: str, *paragraphs: str, last_line: str = "") -> str:
    """Return a card: the reason why nothing was done, the non-empty paragraphs, and the line to type.

    A card that is longer than a screen, because it returns a long text of the user's, names the
    reason again at its end.
    """
    reason = f"{reason.removesuffix('.')}."
    is_long = sum(map(len, paragraphs)) > MAX_SCREEN_CHARACTERS
    blocks = (
        f"resume-hooks: {reason}",
        *(paragraph.removeprefix(f"{NOTHING_CHANGED_TEXT} ") for paragraph in paragraphs),
        reason if is_long else "",
        NOTHING_CHANGED_TEXT,
        last_line,
    )
    return "\n\n".join(block for block in blocks if block)


def pasted_card(text: str, *, is_busy: bool = False) -> str:
    """Return the card for a command that was pasted after a trigger.

    ``text`` is the user's text between the trigger and the command. The card shows it, so that it
    is not lost. ``is_busy`` means that the model is working. In this case Ctrl+C would end its
    turn.
    """
    typed_text = f"\n\n  Your text: {text}" if text else ""
    if is_busy:
        last_line = "Once the answer ends, clear and paste."
    else:
        last_line = "Clear it: Ctrl+C (once!), paste again."
    reason = "nothing was done: text was already in the input box when you pasted"
    if is_busy:
        advice = "once the answer ends, clear it"
    else:
        advice = "clear it (Ctrl+C, once: twice quits)"
    return f"resume-hooks: {reason}; {advice}, then paste the copied line again.{typed_text}\n\n{last_line}"


def session_card(session_id: str, copied: CopyResult, trigger: Trigger) -> str:
    """``>session``, and ``>resume`` without a transcript: the id, and whether it was copied."""
    last_lines = {"copied": "ID copied.", "sent": "Sent to the clipboard; it is above, too."}
    last_line = last_lines.get(copied.how, "Not copied: the id is above.")
    heading = f"resume-hooks · {copied.sentence('session id')}"
    return f"{heading}\n  {session_id}{describe_handoff_offer(trigger)}\n\n{last_line}"


def describe_handoff_offer(trigger: Trigger) -> str:
    """Offer the user's words as a handoff's next step, so that no text is lost; ``""`` without words."""
    command = f"{trigger.name('handoff')} {trigger.text}"
    if trigger.text:
        return f"\n\n  Your text was not sent. To hand off with it as the next step:\n  {command}"
    return ""
