"""The cards (texts shown to the user) of triggers that read no transcript.

``fallback`` uses them too, so this module uses only the standard library and must run on Python
3.9.
"""

from __future__ import annotations

from resume_hooks.hooks.triggers import BARE_SIGN, TRIGGER_TABLE, TYPED_SIGN, Trigger
from resume_hooks.system.copy_result import CopyResult

CARD_WIDTH = 80  # the width of a card in columns
MAX_TITLE_COLUMNS = 68  # the maximum width in columns of a title on a card


HELP_TEXT = """\
resume-hooks · {how}
{rows}
In a shell: {command}{plain}"""


def help_card(command: str, trigger: Trigger) -> str:
    """Return the card of ``>help``, which lists every trigger in ten rows.

    ``command`` is the shell command that prints the help. If the plugin's module shows the card,
    the names have no prefix. If a hook shows the card, the names are those that every client knows,
    because a hook can't tell whether the module is loaded.
    """
    if trigger.sign != TYPED_SIGN:
        space_hint = ""
    else:
        space_hint = "\nA space before > sends a plain prompt."
    if trigger.sign == BARE_SIGN:
        commands = []
        for trigger_row in TRIGGER_TABLE.values():
            if trigger_row.command:
                commands.append(
                    (f"/{trigger_row.command} {trigger_row.argument}", trigger_row.description)
                )
        heading, rows = "what to type", [f"{name:<22} {about}" for name, about in commands]
    else:
        heading = (
            f"type one after {trigger.sign_of_unregistered_triggers} at the very start of a prompt"
        )
        rows = [
            trigger_row.help_row for trigger_row in TRIGGER_TABLE.values() if trigger_row.help_row
        ]
    return HELP_TEXT.format(
        how=heading, rows="\n".join(f"  {row}" for row in rows), command=command, plain=space_hint
    )


NOTHING_CHANGED_TEXT = "Nothing was changed."

MAX_SCREEN_CHARACTERS = 1_500  # the number of characters of a text that fit on a small screen

# below this percentage of the window, no way to shrink the session is suggested
MIN_PERCENT_TO_SHRINK = 20


def usage_card(trigger: Trigger) -> str:
    """Return the card with the name, the arguments and the description of a trigger."""
    row = TRIGGER_TABLE[trigger.verb]
    usage = f"{trigger.name_of_verb(trigger.verb)} {row.argument}".rstrip()
    return f"resume-hooks · {usage}\n  {row.description}\n\n{NOTHING_CHANGED_TEXT}"


def refusal_card(reason: str, *paragraphs: str, last_line: str = "") -> str:
    """Return a card with the reason why nothing was done, further paragraphs, and the line to type.

    Empty paragraphs are left out. A card longer than a screen repeats the reason at its end.
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


def pasted_command_card(text: str, *, is_busy: bool = False) -> str:
    """Return the card for a command that was pasted after other text in the input box.

    ``text`` is the user's text before the command. The card shows it, so that it is not lost.
    ``is_busy`` means that the model is working, so Ctrl+C would end the turn.
    """
    typed_text = f"\n\n  Your text: {text}" if text else ""
    if is_busy:
        last_line = "After the answer: clear the box, paste."
    else:
        last_line = "Clear the box: Ctrl+C once, then paste."
    reason = "nothing was done: text was already in the input box when you pasted"
    if is_busy:
        advice = "once the answer ends, clear the box"
    else:
        advice = "clear the box (one Ctrl+C; a second one quits)"
    return f"resume-hooks: {reason}; {advice}, then paste the copied line again.{typed_text}\n\n{last_line}"


def session_card(session_id: str, copied: CopyResult, trigger: Trigger) -> str:
    """Return the card with the session's id, and with the way to paste it.

    ``>session`` shows this card, and so does ``>resume`` in a session without a transcript.
    """
    last_lines = {"copied": "ID copied.", "sent": "Sent to the clipboard; it is above, too."}
    last_line = last_lines.get(copied.outcome, "Not copied: the id is above.")
    heading = f"resume-hooks · {copied.describe('session id')}"
    return f"{heading}\n  {session_id}{describe_handoff_offer(trigger)}\n\n{last_line}"


def describe_handoff_offer(trigger: Trigger) -> str:
    """Return lines that offer to hand the session off, with the user's words as the next step.

    The lines repeat the words, so that the user's text is not lost. Return ``""`` if there are no
    words.
    """
    command = f"{trigger.name_of_verb('handoff')} {trigger.text}"
    if trigger.text:
        return f"\n\n  Your text was not sent. To hand off with it as the next step:\n  {command}"
    return ""
