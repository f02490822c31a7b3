# mypy: disable-error-code="empty-body"
"""All questions that parts can answer: their names, arguments and results.

A part names a question and its function in ``PART``. The core calls
``seam.find_answers(questions.<name>)``, which returns functions of the declared type, so that mypy
checks the caller. ``tests/part_functions.py``, made by ``make docs``, lets mypy check each part's
function.

This module contains only signatures. Their types are imported for mypy alone, never at run time.
Standard library, Python 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from resume_hooks.seam import declare_question

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from resume_hooks.cli.verbs.archives import DeleteOptions
    from resume_hooks.cli.verbs.search import SearchOptions
    from resume_hooks.cli.verbs.sessions import LineageOptions, SessionsOptions
    from resume_hooks.derive.agents import ForeignWriter, Writer
    from resume_hooks.derive.child.receipt import AccompanyingFiles, Receipt
    from resume_hooks.derive.fresh_child import FreshPlan
    from resume_hooks.derive.model.port import HeadlessModel
    from resume_hooks.derive.outcome import Outcome
    from resume_hooks.derive.trim.plan import TrimPlan
    from resume_hooks.hooks.request import Request
    from resume_hooks.maintenance.doctor import Finding
    from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
    from resume_hooks.paths import Where
    from resume_hooks.search.index.update import Progress
    from resume_hooks.search.result import SearchResult
    from resume_hooks.search.scope import Scope
    from resume_hooks.sessions.agents.claude import Agent
    from resume_hooks.sessions.lineage import Ancestor
    from resume_hooks.sessions.project_folder import MovedFolder
    from resume_hooks.sessions.session_files import SessionFile


# The start of a session. These functions run even if the engine is not installed, unless they say
# otherwise.


@declare_question
def line_at_start(where: Where, /) -> str:
    """Return a line for the user at a session's start, or ``""``.

    Runs on Python 3.9, before the engine is installed.
    """


@declare_question
def line_at_start_in_new_folder(event: dict[str, Any], /) -> str:
    """Return a line for the user at a session's start in a folder that is new to us, or ``""``. Needs the engine."""


@declare_question
def line_of_new_folder(event: dict[str, Any], /) -> str:
    """Return the same line for the background event of the module in the client."""


@declare_question
def work_after_start(where: Where, is_over: Callable[[], bool], /) -> None:
    """Do work that can wait until a start is over, and stop once ``is_over``. Not called in a headless run."""


@declare_question
def push_after_turn() -> None:
    """Push the session of the event on stdin, at the end of a turn. Print nothing and never raise."""


@declare_question
def needs_driver(where: Where, /) -> object:
    """Return a true value if the database driver must be installed. Runs on Python 3.9."""


@declare_question
def note_on_lost_sessions(where: Where, /) -> str:
    """Return a note, shown once, on sessions that were lost before the vault existed, or ``""``."""


# Children


@declare_question
def answer_smart_trim(request: Request, /) -> Outcome | None:
    """Answer a trigger that asks a model to decide a trim; return None for a trim by rules.

    Store the question that the answer contains, if any.
    """


@declare_question
def answer_trigger(request: Request, /) -> Outcome:
    """Answer a trigger of the part; implemented by ``answer_request`` in its module. Raise ResumeHooksError."""


@declare_question
def line_of_trim_help() -> str:
    """Return a line for the help of ``/trim``, after the options of a trim by rules."""


@declare_question
def plan_decided_trim(options: str, request: Request, /) -> TrimPlan | None:
    """Return the model's plan that was shown for these options of a trigger, or None for a trim by rules."""


@declare_question
def files_with_handoff(
    decided: FreshPlan, where: Where, options: Any, /
) -> Callable[[Receipt | None], AccompanyingFiles]:
    """Return a function that writes files next to a handoff into the user's project. Called before any file is made.

    ``options`` are the verb's, or None for a trigger. Called with the child's receipt, the returned
    function writes the files; called with None, it reports which files it would write. Raise
    UsageError for invalid options. A later failure does not undo the child; it is a warning.
    """


@declare_question
def subagent_as_session(
    locator: str, cwd: str, where: Where, /
) -> AbstractContextManager[SessionFile | None]:
    """Return a context in which a sub-agent is readable as a session; its value is None for other locators."""


@declare_question
def import_file(source: str, home: str, /) -> tuple[Receipt, str]:
    """Import a file as a session with the folder ``home``; return the receipt and a remark for the user.

    If a session was already made from the same bytes, the receipt has no session id and names that
    session as its parent. Raise ImportFailed, NotATranscript or UsageError.
    """


# Sessions, their folders and files


@declare_question
def note_on_session(session_id: str, where: Where, /) -> str:
    """Return a note on a session in a list or in a verb's output, or ``""``."""


@declare_question
def homes_of_session(path: str, folder: str, here: str, where: Where, /) -> list[MovedFolder]:
    """Return the likely new locations of the missing ``folder``, likeliest first.

    ``path`` is the session's file, ``here`` the current folder.
    """


@declare_question
def note_on_other_sessions(old: str, new: str, where: Where, /) -> str:
    """Return a note on the other sessions of the folder ``old`` after one was copied to ``new``, or ``""``."""


@declare_question
def notes_after_delete(session_id: str, where: Where, /) -> list[str]:
    """Do what the part must do after a session was deleted; return notes for the user."""


@declare_question
def notes_after_scrub(session_ids: Iterable[str], where: Where, /) -> list[str]:
    """Do what the part must do after secrets were removed; return notes for the user.

    The ids belong to the rewritten files. An id may repeat; it is ``""`` for a file without a
    session.
    """


@declare_question
def folder_of_documents(session: SessionFile, where: Where, /) -> Iterator[tuple[str, str]]:
    """Yield folders with documents about a session, each with the ending of their names."""


@declare_question
def note_on_written_files(where: Where, /) -> str:
    """Return a sentence about files written into projects, for a user who uninstalls, or ``""``."""


@declare_question
def answer_line_search(
    options: SearchOptions,
    scope: Scope,
    cwd: str,
    /,
    *,
    limit: float,
    progress: Progress | None,
) -> SearchResult | None:
    """Return the sessions that wrote the line in ``--file``, or None if ``--file`` has no line number.

    ``limit`` is in seconds; ``progress`` is called while the index is updated. Raise UsageError for
    options that need search words.
    """


@declare_question
def session_store(service: str, /) -> object:
    """Return a team's session store for programs of the Agent SDK, by its libpq service."""


# Options that parts add to verbs of the core: the function that the verb calls for such an option


@declare_question
def check_handoff_option(options: Any, /) -> None:
    """Raise UsageError if the option conflicts with the others."""


@declare_question
def override_trim(options: Any, /) -> Receipt:
    """Trim instead of the verb's own code, and print the answer."""


@declare_question
def override_search(options: SearchOptions, /) -> None:
    """Search instead of the verb's own code, and print the answer."""


@declare_question
def list_by_option(options: SessionsOptions, /) -> None:
    """List sessions instead of the verb's own code, and print the answer."""


@declare_question
def delete_by_option(options: DeleteOptions, /) -> None:
    """Delete instead of the verb's own code, and print the answer."""


@declare_question
def lineage_by_option(
    options: LineageOptions, here: Callable[[LineageOptions], list[Ancestor]], /
) -> tuple[list[Ancestor], list[str]]:
    """Return the ancestors to print, and notes. ``here`` returns the ancestors that this machine knows."""


# Parts' agents, and doctor's checks


@declare_question
def agent_strategy(home: str, copies: str, where: Where, /) -> Agent:
    """Return the agent with its sessions in ``home``; ``copies`` is our folder for copies in Claude Code's format."""


@declare_question
def agent_writer(home: str, where: Where, /) -> Writer:
    """Return the writer of an agent's sessions."""


@declare_question
def foreign_agent_writer(home: str, where: Where, /) -> ForeignWriter:
    """Return the writer of sessions for a part's agent."""


@declare_question
def agent_model(where: Where, name: str, /) -> HeadlessModel:
    """Return the agent's model with a name; ``""`` means the agent's own default."""


@declare_question
def agent_defects(path: str, find: Callable[[str], str | None], /) -> Iterable[Defect]:
    """Yield a session's defects.

    ``find`` finds other files, as ``Agent.find_file`` does. Raise ResumeHooksError if it can't be
    read.
    """


@declare_question
def is_loss(kind: DefectKind, /) -> bool:
    """Check whether a defect of this kind loses content in a repaired child."""


@declare_question
def check_of_doctor(cwd: str, /) -> Finding:
    """Return a finding of doctor."""
