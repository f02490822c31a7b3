"""Represent the outcomes of verbs for their callers: hooks, shell commands and the API.

A verb decides what to do and writes the files. Its outcome contains everything that the caller
needs to show the result. This module prints no output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from resume_hooks.derive.child.receipt import AccompanyingFiles
from resume_hooks.system.copy_result import CopyResult

if TYPE_CHECKING:  # Imported only for types, because a search does not need these modules.
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write_child import ChildPlan
    from resume_hooks.derive.summary import SummaryResult
    from resume_hooks.errors import ResumeHooksError

PlanT_co = TypeVar("PlanT_co", bound="ChildPlan | None", covariant=True)


class OpenedSession(NamedTuple, Generic[PlanT_co]):
    """A session to continue: a new session, or an earlier one if ``receipt.written`` is false.

    ``plan`` is None if an earlier session was found before a plan was made. ``action_phrase`` names the
    action in a few words. ``facts`` are lines about the contents. ``remark`` is the first line to
    show in the new session if the user has seen no other text. ``next_step`` is the text for the
    session's input box.

    ``accompanying_files`` are the files that were written in addition to the session. ``summary`` is the outcome
    of the request for a summary.
    """

    receipt: Receipt
    plan: PlanT_co
    action_phrase: str
    facts: tuple[str, ...] = ()
    remark: str = ""
    next_step: str = ""
    accompanying_files: AccompanyingFiles = AccompanyingFiles()
    summary: SummaryResult | None = None


class NothingWritten(NamedTuple, Generic[PlanT_co]):
    """The outcome of a dry run, or of a plan that was not worthwhile. No session was written.

    ``receipt`` does not name a session. ``accompanying_files`` are the files that a real run would write.
    ``reason`` explains why the verb had nothing to do, or is None.
    """

    receipt: Receipt
    plan: PlanT_co
    reason: ResumeHooksError | None = None
    accompanying_files: AccompanyingFiles = AccompanyingFiles()


class Question(NamedTuple):
    """A question to the user. If the user answers yes, the child is written or the session is repaired.

    ``form_text`` is a text of a few lines for a client that asks for the answer in a form.
    ``card`` explains how to type the answer. If ``offers_trim_in_place`` is true, the user can also
    choose to trim the session itself instead of a copy.
    """

    form_text: str
    card: str = ""
    offers_trim_in_place: bool = False


class Report(NamedTuple):
    """A text for the user.

    ``make_text`` returns the text. Its argument says whether ``text_to_copy`` could be copied to
    the clipboard. If the user presses a key, ``further_lines`` replace the last line of the text.
    """

    make_text: Callable[[CopyResult], str]
    text_to_copy: str = ""
    further_lines: tuple[str, ...] = ()


class PendingAnswer(NamedTuple):
    """An answer for which the user must wait.

    ``waiting_text`` is shown until the answer arrives. ``prompt`` is sent to the session's own
    model. If it is ``""``, nothing is sent.
    """

    waiting_text: str
    prompt: str = ""


AnyOpenedSession = OpenedSession["ChildPlan | None"]
Outcome = AnyOpenedSession | NothingWritten["ChildPlan | None"] | Question | Report | PendingAnswer


def make_text_report(text: str) -> Report:
    """Return a report that always shows ``text``, whether or not something was copied to the clipboard.

    If ``text`` is ``""``, the report is empty.
    """
    return Report(lambda _: text)


def format_remark_for_new_session(receipt: Receipt) -> str:
    """Return the line to show first in a new session that the client opened by itself.

    Without this line, the user would not notice the change, because the new session looks like the
    old one.
    """
    resume_command = f"/resume {receipt.parent_session_id}"
    sizes = f"about {receipt.tokens_after:,} tokens"
    if receipt.tokens_before != receipt.tokens_after:
        sizes += f" instead of {receipt.tokens_before:,}"
    return (
        f"This is the new session, {receipt.title}: {sizes}. Back to the old one: {resume_command}"
    )
