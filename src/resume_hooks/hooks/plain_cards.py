"""The texts of triggers that need no transcript. Standard library, Python 3.9: the fallback shows them too."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

from resume_hooks.hooks.triggers import BROUGHT
from resume_hooks.system.clipboard import Copied

COLUMNS = 80
"""What a card is written for."""

ROW = 68
"""Columns that a title may fill in a card."""


class TriggerHelp(NamedTuple):
    """What a trigger is called, what may follow it, and what it does in one line; commands/ say the same.

    ``row`` is its row in the card of ``>help``, ``""`` where another's names it.
    """

    verb: str
    argument: str
    about: str
    row: str = ""
    aliases: Tuple[str, ...] = ()


_CORE = (
    TriggerHelp(
        "handoff",
        "[next step]",
        "Go on in a fresh session that knows this one and its ancestors",
        ">handoff [next step]   go on in a fresh session that knows this one",
    ),
    TriggerHelp(
        "rollover",
        "[focus]",
        "Go on in a fresh session with a model's summary; costs tokens, up to two minutes",
        ">rollover [focus]      the same with a model's summary, up to two minutes",
    ),
    TriggerHelp(
        "trim",
        "[options]",
        "Preview a copy without old tool output; trim yes makes it",
        ">trim [options]        go on in a copy without old tool output; asks first",
    ),
    TriggerHelp(
        "resume",
        "[--table]",
        "Show how full this session is and how to go on; copy its id",
        ">resume                how full this session is, what fits best; copies its id",
        ("continue",),
    ),
    TriggerHelp(
        "search",
        "[--all] <words>",
        "Find what was said in this project; --all: in every project",
        ">search [--all] words  find what was said in this project, or in all",
    ),
    TriggerHelp(
        "session",
        "",
        "Copy this session's id",
        ">session, >lineage, >recover-context   its id, its ancestors, what was done",
        ("session-id",),
    ),
    TriggerHelp("lineage", "", "Show this session's ancestors, oldest first"),
    TriggerHelp("recover-context", "", "Show what was done here, to paste if the model has lost it"),
    TriggerHelp("help", "", "Show what resume-hooks answers to"),
)


def _before(verb: str) -> List[TriggerHelp]:
    """The triggers of parts that stand before one of the core."""
    brought = [each for each in BROUGHT if each.before == verb]
    return [TriggerHelp(each.name, each.argument, each.about, each.row, each.aliases) for each in brought]


TRIGGERS = tuple(row for own in _CORE for row in (*_before(own.verb), own))

HELP = """\
resume-hooks · type at the very start of a prompt · only rollover costs tokens
{rows}
Or /resume-hooks:handoff and so on. In a shell: {command}
A space before > sends a plain prompt."""


def help_card(command: str) -> str:
    """``>help``: every trigger, in ten rows; ``command`` is the help of the command line."""
    return HELP.format(rows="\n".join(f"  {each.row}" for each in TRIGGERS if each.row), command=command)


NOTHING = "Nothing was changed."


def refusal_card(words: str, *paragraphs: str, last: str = "") -> str:
    """Say why nothing was done, then paragraphs that are not empty; ``last`` is what to type next."""
    parts = (f"resume-hooks: {words.removesuffix('.')}.", *paragraphs, NOTHING, last)
    return "\n\n".join(part for part in parts if part)


def sign(*, slash: bool) -> str:
    """How the form begins that the user types."""
    return "/resume-hooks:" if slash else ">"


def pasted_card(text: str, *, busy: bool = False) -> str:
    """A command pasted over a trigger; ``text`` is what stood between the two, so that nothing is lost.

    ``busy``: the model is at work, and Ctrl+C would end its turn.
    """
    kept = f"\n\n  Your text: {text}" if text else ""
    again = "Once the answer ends, clear and paste." if busy else "Clear it: Ctrl+C (once!), paste again."
    said = "nothing was done: text was already in the input box when you pasted"
    then = "once the answer ends, clear it" if busy else "clear it (Ctrl+C, once: twice quits)"
    return f"resume-hooks: {said}; {then}, then paste the copied line again.{kept}\n\n{again}"


def session_card(session_id: str, copied: Copied, text: str = "") -> str:
    """``>session``: the id, and whether it was copied; ``text`` is what was typed after ``>resume``."""
    return f"resume-hooks · {copied.sentence('session id')}\n  {session_id}{offer(text)}\n\n{id_line(copied)}"


def offer(text: str) -> str:
    """The user's words as the handoff that they may have meant, ``""`` for none: no text is thrown away."""
    return f"\n\n  Your text was not sent. To hand off with it as the next step:\n  >handoff {text}" if text else ""


def id_line(copied: Copied) -> str:
    """The last line of a card that copied an id."""
    lines = {"copied": "ID copied.", "sent": "Sent to the clipboard; it is above, too."}
    return lines.get(copied.how, "Not copied: the id is above.")
