"""The outcome of a verb, for each caller of the verb: a prompt's hook, the module, the shell, the API.

A verb decides and writes. The outcome contains everything that the caller needs to show it. This
module prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from resume_hooks.derive.child.receipt import AccompanyingFiles
from resume_hooks.system.copy_result import CopyResult

if TYPE_CHECKING:  # a search does not import these modules
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write_child import ChildPlan
    from resume_hooks.derive.summary import SummaryOutcome
    from resume_hooks.errors import ResumeHooksError

Plan_co = TypeVar("Plan_co", bound="ChildPlan | None", covariant=True)


class OpenedSession(NamedTuple, Generic[Plan_co]):
    """A session to continue: a new session, or an earlier one if ``receipt.written`` is false.

    ``plan`` is the plan, or None if an earlier session was found without one. ``action`` names the
    action in a few words. ``facts`` describe the contents, one line each. If the user saw nothing else, ``remark``
    is the first line to show in the session. ``next_step`` belongs in the session's input box.
    ``files`` are the files that were written in addition to the session. ``summary`` is the outcome
    of the request for a summary.
    """

    receipt: Receipt
    plan: Plan_co
    action: str
    facts: tuple[str, ...] = ()
    remark: str = ""
    next_step: str = ""
    files: AccompanyingFiles = AccompanyingFiles()
    summary: SummaryOutcome | None = None


class NothingWritten(NamedTuple, Generic[Plan_co]):
    """An outcome without a written session, because of a dry run or because the plan would not pay.

    ``receipt`` does not name a session. ``files`` are the files that a real run would write. If
    there was nothing to do from the start, ``reason`` is the reason.
    """

    receipt: Receipt
    plan: Plan_co
    reason: ResumeHooksError | None = None
    files: AccompanyingFiles = AccompanyingFiles()


class Question(NamedTuple):
    """A question to the user. If the answer is yes, the child is written, or the session is repaired.

    ``short`` has a few lines for a client with its own question form. ``card`` explains how to type
    the answer. ``in_place`` means that the session itself can be trimmed instead.
    """

    short: str
    card: str = ""
    in_place: bool = False


class Report(NamedTuple):
    """A text for the user. It may depend on whether ``to_copy`` was copied to the clipboard.

    ``further_lines`` has the lines that a key press shows instead of the text's last line.
    """

    text: Callable[[CopyResult], str]
    to_copy: str = ""
    further_lines: tuple[str, ...] = ()


class PendingAnswer(NamedTuple):
    """An answer that takes longer than a prompt may wait.

    ``waiting_text`` is shown until the answer is ready. ``prompt`` is a request for the session's
    own model, or ``""``.
    """

    waiting_text: str
    prompt: str = ""


AnyOpenedSession = OpenedSession["ChildPlan | None"]
Outcome = AnyOpenedSession | NothingWritten["ChildPlan | None"] | Question | Report | PendingAnswer


def report_on_text(text: str) -> Report:
    """Return a report that does not depend on the clipboard.

    ``""`` means that there is nothing to report.
    """
    return Report(lambda _: text)


def format_first_line(receipt: Receipt) -> str:
    """Return the first line for a new session that the client opened by itself.

    The line is needed because the new session looks like the old session.
    """
    resume_command = f"/resume {receipt.parent_session_id}"
    sizes = f"about {receipt.tokens_after:,} tokens"
    if receipt.tokens_before != receipt.tokens_after:
        sizes += f" instead of {receipt.tokens_before:,}"
    return (
        f"This is the new session, {receipt.title}: {sizes}. Back to the old one: {resume_command}"
    )
