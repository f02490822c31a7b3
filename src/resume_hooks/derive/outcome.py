"""The outcome of a verb, for every door that asks for one: a prompt's hook, the module, the shell, the API.

A verb decides and writes; its outcome holds all that a door needs to draw it. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.system.copy_result import Copied

if TYPE_CHECKING:  # a search makes no child
    from resume_hooks.derive.child.receipt import Receipt


class Opened(NamedTuple):
    """A session to go on in: one that was made now, or an earlier one (``receipt.written`` is false).

    ``done`` says how it was made in a few words, ``facts`` what it holds, a line each. ``remark`` is
    the first line to show in it where nobody saw the rest; ``next_step`` belongs into its input box.
    """

    receipt: Receipt
    done: str
    facts: tuple[str, ...] = ()
    remark: str = ""
    next_step: str = ""


class Question(NamedTuple):
    """A question whose yes makes the child, or repairs the session.

    ``short`` are a few lines for a client that asks by itself; ``card`` says how to type the answer.
    With ``in_place`` the session itself can be made smaller, too.
    """

    short: str
    card: str = ""
    in_place: bool = False


class Report(NamedTuple):
    """A text to read, which may depend on whether ``to_copy`` reached the clipboard.

    ``more`` are the lines that a key shows in place of the text's last line.
    """

    text: Callable[[Copied], str]
    to_copy: str = ""
    more: tuple[str, ...] = ()


class Waiting(NamedTuple):
    """An answer that takes longer than a prompt may wait: ``shown`` is what to read until then.

    ``prompt`` is what the session's own model is asked meanwhile, ``""`` for nothing.
    """

    shown: str
    prompt: str = ""


class Nothing(NamedTuple):
    """Nothing was made: ``why`` says so, ``""`` where nobody has to hear of it."""

    why: str = ""


Outcome = Opened | Question | Report | Waiting | Nothing


def report_text(text: str) -> Report:
    """A text that is the same whatever is copied."""
    return Report(lambda _: text)
