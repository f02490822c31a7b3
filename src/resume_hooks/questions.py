# mypy: disable-error-code="empty-body"
"""Every question that parts answer, on one page: its name, what is given, and what comes back.

A part names a question and its function in ``PART``. Where the core asks, it calls
``seam.answers(questions.<name>)``, which gives functions of the type below, so mypy checks the
caller. ``tests/part_functions.py``, made by ``make docs``, has mypy check the function of each part.

Only signatures stand here. The types that they name are imported for mypy alone, never at run time.
Standard library, Python 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from resume_hooks.seam import question_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from resume_hooks.cli.verbs.archives import DeleteOptions
    from resume_hooks.cli.verbs.search import SearchOptions
    from resume_hooks.cli.verbs.sessions import LineageOptions, SessionsOptions
    from resume_hooks.derive.agents import ForeignWriter, Writer
    from resume_hooks.derive.child.receipt import FilesBeside, Receipt
    from resume_hooks.derive.fresh_child import FreshPlan
    from resume_hooks.derive.model.port import HeadlessModel
    from resume_hooks.derive.outcome import Outcome
    from resume_hooks.derive.trim.plan import TrimPlan
    from resume_hooks.hooks.request import Request
    from resume_hooks.maintenance.doctor import Finding
    from resume_hooks.maintenance.fsck.findings import Defect, Kind
    from resume_hooks.paths import Where
    from resume_hooks.search.engine import SearchResult
    from resume_hooks.search.index.update import Progress
    from resume_hooks.search.scope import Scope
    from resume_hooks.sessions.agents.claude import Agent
    from resume_hooks.sessions.lineage import Ancestor
    from resume_hooks.sessions.project_folder import MovedFolder
    from resume_hooks.sessions.session_files import SessionFile


# A session starts. Functions of these run where the engine may be missing, unless they say otherwise.


@question_of
def line_at_start(where: Where, /) -> str:
    """A line for the user at a start; ``""`` for nothing. Runs on Python 3.9, before the engine is there."""


@question_of
def line_at_start_in_new_folder(event: dict[str, Any], /) -> str:
    """A line at the event of a start in a folder that is new to us; ``""`` for nothing. Needs the engine."""


@question_of
def line_of_new_folder(event: dict[str, Any], /) -> str:
    """The same where nobody waits: for the event with which the module in the client asks."""


@question_of
def work_after_start(where: Where, is_over: Callable[[], bool], /) -> None:
    """Do work that can wait until a start is over, until ``is_over``; not asked in a headless run."""


@question_of
def push_after_turn() -> None:
    """Push the session whose event is on stdin, at the end of a turn; prints nothing, never raises."""


@question_of
def needs_driver(where: Where, /) -> object:
    """Whether the database driver is to be installed, as truth. Runs on Python 3.9."""


@question_of
def note_on_lost_sessions(where: Where, /) -> str:
    """A note on sessions that were lost before the vault existed, once; ``""`` where none was."""


# Children


@question_of
def answer_smart_trim(request: Request, /) -> Outcome | None:
    """The answer to a trigger that has a model decide a trim; None for a trim by rules.

    It keeps the question that it asks, if any.
    """


@question_of
def answer_trigger(request: Request, /) -> Outcome:
    """The answer to a trigger of the part, by the function ``answer`` of its lane. ResumeHooksError."""


@question_of
def line_of_trim_help() -> str:
    """A line behind the options of a trim by rules, in the help of ``/trim``."""


@question_of
def plan_decided_trim(options: str, request: Request, /) -> TrimPlan | None:
    """The plan of a model that was shown for these options of a trigger; None for a trim by rules."""


@question_of
def files_beside_handoff(
    decided: FreshPlan, where: Where, options: Any, /
) -> Callable[[Receipt | None], FilesBeside]:
    """A function that writes files beside a handoff into the user's project, before anything is made.

    ``options`` are those of the verb, None for a trigger. Given the receipt of the child the
    function writes the files; given None it says which those would be. UsageError for options that
    make no sense; a later failure costs no child: it is a warning.
    """


@question_of
def subagent_as_session(
    locator: str, cwd: str, where: Where, /
) -> AbstractContextManager[SessionFile | None]:
    """The sub-agent that a locator names, as a session while the context lasts; None for other locators."""


@question_of
def import_file(source: str, home: str, /) -> tuple[Receipt, str]:
    """Import a file as a session with the folder ``home``: the receipt, and a remark for the user.

    A receipt without a session id names, as its parent, the session that was made of the same bytes
    before. ImportFailed, NotATranscript, UsageError.
    """


# Sessions, and the folders and files around them


@question_of
def note_on_session(session_id: str, where: Where, /) -> str:
    """A note on a session that a list or a verb shows; ``""`` for nothing."""


@question_of
def homes_of_session(path: str, folder: str, here: str, where: Where, /) -> list[MovedFolder]:
    """The likely new places of ``folder``, which is gone, the likeliest first.

    ``path`` is the session's file, ``here`` the current folder.
    """


@question_of
def note_on_other_sessions(old: str, new: str, where: Where, /) -> str:
    """A note on other sessions of the folder ``old``, once one of them has a copy in ``new``; ``""`` for none."""


@question_of
def notes_after_delete(session_id: str, where: Where, /) -> list[str]:
    """Act on the deletion of a session; notes for the user."""


@question_of
def notes_after_scrub(session_ids: Iterable[str], where: Where, /) -> list[str]:
    """Act on the removal of secrets; notes for the user.

    The ids are those of rewritten files: one may come several times, ``""`` for a file of no session.
    """


@question_of
def folder_of_documents(session: SessionFile, where: Where, /) -> Iterator[tuple[str, str]]:
    """Folders with documents about a session, each with the ending of their names."""


@question_of
def note_on_written_files(where: Where, /) -> str:
    """A sentence on files written into projects, for a user who uninstalls; ``""`` for none."""


@question_of
def answer_line_search(
    options: SearchOptions,
    scope: Scope,
    cwd: str,
    /,
    *,
    limit: float,
    progress: Progress | None,
) -> SearchResult | None:
    """The sessions that wrote the line that ``--file`` names; None where it names no line.

    ``limit`` is in seconds, ``progress`` hears of indexing. UsageError for options of words.
    """


@question_of
def session_store(service: str, /) -> object:
    """The store of a team's sessions for programs of the Agent SDK, by its libpq service."""


# Options of parts on verbs of the core: what the verb calls where such an option was given


@question_of
def check_handoff_option(options: Any, /) -> None:
    """UsageError where the option makes no sense with the others."""


@question_of
def trim_by_option(options: Any, /) -> Receipt:
    """Trim in place of the verb, and print the answer."""


@question_of
def search_by_option(options: SearchOptions, /) -> None:
    """Search in place of the verb, and print the answer."""


@question_of
def list_by_option(options: SessionsOptions, /) -> None:
    """List in place of the verb, and print the answer."""


@question_of
def delete_by_option(options: DeleteOptions, /) -> None:
    """Delete in place of the verb, and print the answer."""


@question_of
def lineage_by_option(
    options: LineageOptions, here: Callable[[LineageOptions], list[Ancestor]], /
) -> tuple[list[Ancestor], list[str]]:
    """The ancestors to print in place of those of this machine, which ``here`` gives; and notes."""


# Agents of parts, and checks of doctor


@question_of
def agent_strategy(home: str, copies: str, where: Where, /) -> Agent:
    """The agent with its sessions in ``home``; ``copies`` is our folder for copies in our form of record."""


@question_of
def agent_writer(home: str, where: Where, /) -> Writer:
    """What writes sessions of an agent."""


@question_of
def foreign_agent_writer(home: str, where: Where, /) -> ForeignWriter:
    """What writes sessions of an agent of a part."""


@question_of
def agent_model(where: Where, name: str, /) -> HeadlessModel:
    """The agent's model of a name; ``""`` for the one of its own settings."""


@question_of
def agent_defects(path: str, find: Callable[[str], str | None], /) -> Iterable[Defect]:
    """The defects of a session; ``find`` is ``Agent.file_of``. ResumeHooksError where it can't be read."""


@question_of
def is_loss(kind: Kind, /) -> bool:
    """Whether a repaired child lacks something because of a defect of that kind."""


@question_of
def check_of_doctor(cwd: str, /) -> Finding:
    """A finding of doctor's."""
