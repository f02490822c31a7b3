"""The outcome of a verb, for every door that asks for one: a prompt's hook, the module, the shell, the API.

A verb decides and writes; its outcome holds all that a door needs to draw it. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from resume_hooks.derive.child.receipt import FilesBeside
from resume_hooks.system.copy_result import Copied

if TYPE_CHECKING:  # a search makes no child
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write import ChildPlan
    from resume_hooks.derive.summary import SummaryOutcome
    from resume_hooks.errors import ResumeHooksError

Plan_co = TypeVar("Plan_co", bound="ChildPlan | None", covariant=True)


class Opened(NamedTuple, Generic[Plan_co]):
    """A session to go on in: one that was made now, or an earlier one (``receipt.written`` is false).

    ``plan`` is the one that was written, None for an earlier session. ``done`` says how it was made
    in a few words, ``facts`` what it holds, a line each. ``remark`` is the first line to show in it
    where nobody saw the rest; ``next_step`` belongs into its input box. ``files`` were written
    beside it; ``summary`` is what came of asking a model for one.
    """

    receipt: Receipt
    plan: Plan_co
    done: str
    facts: tuple[str, ...] = ()
    remark: str = ""
    next_step: str = ""
    files: FilesBeside = FilesBeside()
    summary: SummaryOutcome | None = None


class Nothing(NamedTuple, Generic[Plan_co]):
    """Nothing was written: in a dry run, or since the plan would not pay.

    ``receipt`` names no session; ``files`` would be written beside one. ``why`` is the reason where
    there never was anything to do.
    """

    receipt: Receipt
    plan: Plan_co
    why: ResumeHooksError | None = None
    files: FilesBeside = FilesBeside()


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


AnyOpened = Opened["ChildPlan | None"]
Outcome = AnyOpened | Nothing["ChildPlan | None"] | Question | Report | Waiting


def report_text(text: str) -> Report:
    """A text that is the same whatever is copied; ``""`` where nobody has to hear anything."""
    return Report(lambda _: text)


def line_in_new_session(receipt: Receipt) -> str:
    """The first line in a new session that the client opened by itself, since it looks like the old one."""
    back = f"/resume {receipt.parent_session_id}"
    took = f"about {receipt.tokens_after:,} tokens, where the old one has {receipt.tokens_before:,}"
    return f"This is the new session, {receipt.title}: {took}. Back to the old one: {back}"
