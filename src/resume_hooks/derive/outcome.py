"""The outcome of a verb, for each of its callers: a prompt's hook, the module, the shell, the API.

A verb decides and writes. Its outcome contains everything that a caller needs to show it. Nothing
here prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from resume_hooks.derive.child.receipt import FilesBeside
from resume_hooks.system.copy_result import CopyResult

if TYPE_CHECKING:  # a search imports none of these
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write import ChildPlan
    from resume_hooks.derive.summary import SummaryOutcome
    from resume_hooks.errors import ResumeHooksError

Plan_co = TypeVar("Plan_co", bound="ChildPlan | None", covariant=True)


class OpenedSession(NamedTuple, Generic[Plan_co]):
    """A session to continue in: a new one, or an earlier one (``receipt.written`` is false).

    ``plan`` is the written plan, or None for an earlier session. ``done`` names the action in a few
    words. ``facts`` describe the contents, one line each. ``remark`` is the first line to show in
    the session if the user saw nothing else. ``next_step`` belongs in its input box. ``files`` were
    written in addition. ``summary`` is the outcome of the request for a summary.
    """

    receipt: Receipt
    plan: Plan_co
    done: str
    facts: tuple[str, ...] = ()
    remark: str = ""
    next_step: str = ""
    files: FilesBeside = FilesBeside()
    summary: SummaryOutcome | None = None


class NothingWritten(NamedTuple, Generic[Plan_co]):
    """Nothing was written, because of a dry run or because the plan would not pay.

    ``receipt`` does not name a session. ``files`` are the ones that a real run would write. ``why``
    is the reason if there was nothing to do from the start.
    """

    receipt: Receipt
    plan: Plan_co
    why: ResumeHooksError | None = None
    files: FilesBeside = FilesBeside()


class Question(NamedTuple):
    """A question. A yes writes the child, or repairs the session.

    ``short`` has a few lines for a client with its own question form. ``card`` explains how to type
    the answer. If ``in_place``, the session itself can be trimmed instead.
    """

    short: str
    card: str = ""
    in_place: bool = False


class Report(NamedTuple):
    """A text to read. It may depend on whether ``to_copy`` reached the clipboard.

    ``more`` has the lines that a key press shows instead of the text's last line.
    """

    text: Callable[[CopyResult], str]
    to_copy: str = ""
    more: tuple[str, ...] = ()


class Waiting(NamedTuple):
    """An answer that takes longer than a prompt may wait. ``shown`` is the text for the meantime.

    ``prompt`` is a request for the session's own model, or ``""``.
    """

    shown: str
    prompt: str = ""


AnyOpenedSession = OpenedSession["ChildPlan | None"]
Outcome = AnyOpenedSession | NothingWritten["ChildPlan | None"] | Question | Report | Waiting


def report_on_text(text: str) -> Report:
    """Return a report that does not depend on the clipboard.

    ``""`` means that there is nothing to say.
    """
    return Report(lambda _: text)


def first_line_in_new_session(receipt: Receipt) -> str:
    """Return the first line for a new session that the client opened by itself: it looks like the old one."""
    resume_command = f"/resume {receipt.parent_session_id}"
    sizes = f"about {receipt.tokens_after:,} tokens instead of {receipt.tokens_before:,}"
    return (
        f"This is the new session, {receipt.title}: {sizes}. Back to the old one: {resume_command}"
    )
