# mypy: disable-error-code="empty-body"
"""The questions that parts can answer. Each question is declared as a function that is never called.

In ``PART``, a part lists the questions that it answers and the functions that answer them. The core
calls ``seam.find_answers(questions.<name>)``, which yields functions of the declared type, so that
mypy can check the calls. ``make docs`` generates ``tests/part_functions.py``, with which mypy
checks the parts' functions.

Types are imported only for mypy. This module uses only the standard library and must run on Python
3.9.
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
    from resume_hooks.derive.fresh_child import FreshChildPlan
    from resume_hooks.derive.model.port import HeadlessModel
    from resume_hooks.derive.outcome import Outcome
    from resume_hooks.derive.trim.plan import TrimPlan
    from resume_hooks.hooks.request import Request
    from resume_hooks.maintenance.doctor import Finding
    from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
    from resume_hooks.paths import Where
    from resume_hooks.search.index.update import ProgressCallback
    from resume_hooks.search.result import SearchResult
    from resume_hooks.search.scope import Scope
    from resume_hooks.sessions.agents.claude import Agent
    from resume_hooks.sessions.lineage import Ancestor
    from resume_hooks.sessions.project_folder import MovedFolder
    from resume_hooks.sessions.session_files import SessionFile


# Questions at the start of a session. The functions that answer them run even before the engine is
# installed, unless the question's docstring says otherwise.


@declare_question
def session_start_notice(where: Where, /) -> str:
    """Return a line for the user at the start of a session, or ``""``.

    The function runs even before the engine is installed, so it must run on Python 3.9.
    """


@declare_question
def start_notice_in_new_folder(event: dict[str, Any], /) -> str:
    """Return a notice that is shown when a session starts in a folder that had no sessions, or ``""``.

    The function runs only if the engine is installed.
    """


@declare_question
def notice_after_search_in_new_folder(event: dict[str, Any], /) -> str:
    """Return the notice of ``start_notice_in_new_folder``, after a search that may take time.

    The plugin's module, which runs in the client, calls the function in the background.
    """


@declare_question
def do_work_after_start(where: Where, is_time_up: Callable[[], bool], /) -> None:
    """Do work that can wait until the session has started. Stop when ``is_time_up`` returns True.

    The function is not called in a headless run.
    """


@declare_question
def push_session_after_turn() -> None:
    """Push a session to the team at the end of a turn.

    The event is on stdin. The function prints nothing and raises no exceptions.
    """


@declare_question
def find_reason_for_database_driver(where: Where, /) -> object:
    """Return an object for which the database driver must be installed, or a false value if there is none.

    The function must run on Python 3.9.
    """


@declare_question
def note_on_lost_sessions(where: Where, /) -> str:
    """Return a note about sessions that were lost before the vault existed, or ``""``.

    The note is shown once.
    """


# Children


@declare_question
def answer_smart_trim(request: Request, /) -> Outcome | None:
    """Return the answer to a trim in which a model chooses the contents, or None for an ordinary trim.

    If the answer asks the user a question, the function also stores the question.
    """


@declare_question
def answer_trigger(request: Request, /) -> Outcome:
    """Return the outcome of a part's trigger.

    The part implements this as ``answer_request`` in the module that the trigger names. It raises
    ResumeHooksError if it fails.
    """


@declare_question
def line_of_trim_help() -> str:
    """Return the line for the help of ``/trim`` that follows the options of an ordinary trim."""


@declare_question
def plan_confirmed_trim(options: str, request: Request, /) -> TrimPlan | None:
    """Return the plan that a model made and the user saw for these options, or None if no model was asked."""


@declare_question
def make_handoff_file_writer(
    plan: FreshChildPlan, where: Where, options: Any, /
) -> Callable[[Receipt | None], AccompanyingFiles]:
    """Return a function that writes files for a handoff into the user's project.

    ``make_handoff_file_writer`` is called before any file is written. ``options`` are the options
    of the command, or None for a trigger. Raise UsageError if they are not valid. The returned
    function takes the child's receipt and writes the files. If it gets None instead, it writes
    nothing and only returns the files that it would write. If writing fails, the child is kept and
    a warning is shown.
    """


@declare_question
def open_subagent_as_session(
    locator: str, cwd: str, where: Where, /
) -> AbstractContextManager[SessionFile | None]:
    """Return a context in which a sub-agent can be read as a session.

    The context's value is None if the locator does not name a sub-agent.
    """


@declare_question
def import_file(source: str, home: str, /) -> tuple[Receipt, str]:
    """Import a file as a session of the folder ``home``. Return the receipt and a remark for the user.

    If the same bytes were imported before, the receipt has no session id, and its parent is the
    imported session. Raise ImportFailed, NotATranscript or UsageError.
    """


# Questions about sessions, their folders and files.


@declare_question
def note_on_session(session_id: str, where: Where, /) -> str:
    """Return a note about a session for a list or a verb's output, or ``""``."""


@declare_question
def likely_folders_of_session(
    path: str, missing_folder: str, current_folder: str, where: Where, /
) -> list[MovedFolder]:
    """Return the folders to which the missing folder of a session was probably moved, likeliest first.

    ``path`` is the session's file.
    """


@declare_question
def note_on_other_sessions(old_folder: str, new_folder: str, where: Where, /) -> str:
    """Return a note about the other sessions of ``old_folder``, or ``""``.

    The note is shown after one of the folder's sessions was copied to ``new_folder``.
    """


@declare_question
def notes_after_delete(session_id: str, where: Where, /) -> list[str]:
    """Do a part's work after a session was deleted, and return notes for the user."""


@declare_question
def notes_after_scrub(session_ids: Iterable[str], where: Where, /) -> list[str]:
    """Do a part's work after secrets were removed from files, and return notes for the user.

    ``session_ids`` are the ids of the sessions whose files were rewritten. An id may occur more
    than once. For a file that belongs to no session, the id is ``""``.
    """


@declare_question
def document_folders_and_extensions(
    session: SessionFile, where: Where, /
) -> Iterator[tuple[str, str]]:
    """Yield each folder that contains documents about a session, and their file extension."""


@declare_question
def build_note_on_written_files(where: Where, /) -> str:
    """Return a sentence about files that were written into projects, or ``""``.

    A user reads it when the plugin is removed.
    """


@declare_question
def answer_line_search(
    options: SearchOptions,
    scope: Scope,
    cwd: str,
    /,
    *,
    max_seconds: float,
    progress: ProgressCallback | None,
) -> SearchResult | None:
    """Return the sessions that wrote the line that ``--file`` names, or None if it names no line.

    Updating the index takes at most ``max_seconds`` seconds, and ``progress`` shows the progress of
    the update. Raise UsageError for options that can only be used with search words.
    """


@declare_question
def session_store(service: str, /) -> object:
    """Return the team's session store for programs of the Agent SDK. ``service`` is a libpq service."""


# Questions for the options that parts add to verbs of the core. The verb calls the function if the
# user gives the option.


@declare_question
def check_handoff_option(options: Any, /) -> None:
    """Raise UsageError if the part's option and another option of ``handoff`` can't be combined."""


@declare_question
def trim_with_part_option(options: Any, /) -> Receipt:
    """Trim a session as the part's option requests, print the answer, and return the receipt.

    If the user gives this option, the command ``trim`` only calls this function.
    """


@declare_question
def search_with_option_of_part(options: SearchOptions, /) -> None:
    """Search as the part's option requests, and print the answer.

    If the user gives this option, the command ``search`` only calls this function.
    """


@declare_question
def list_sessions_with_part_option(options: SessionsOptions, /) -> None:
    """List the sessions that the part's option selects, and print the list.

    If the user gives this option, the command ``sessions`` only calls this function.
    """


@declare_question
def delete_sessions_with_part_option(options: DeleteOptions, /) -> None:
    """Delete the sessions that the part's option selects, and print the answer.

    If the user gives this option, the command ``delete`` only calls this function.
    """


@declare_question
def find_lineage_with_part_option(
    options: LineageOptions, find_local_lineage: Callable[[LineageOptions], list[Ancestor]], /
) -> tuple[list[Ancestor], list[str]]:
    """Return the rows that ``lineage`` must print, and notes.

    ``find_local_lineage`` returns the rows from this machine.
    """


# Questions about the agents of parts, and about doctor's checks.


@declare_question
def agent_strategy(home: str, copy_folder: str, where: Where, /) -> Agent:
    """Return the agent whose sessions are in ``home``.

    ``copy_folder`` is our folder for copies of these sessions in Claude Code's format.
    """


@declare_question
def agent_writer(home: str, where: Where, /) -> Writer:
    """Return the object that writes sessions of this agent."""


@declare_question
def foreign_agent_writer(home: str, where: Where, /) -> ForeignWriter:
    """Return the object that writes sessions for an agent that a part adds."""


@declare_question
def agent_model(where: Where, name: str, /) -> HeadlessModel:
    """Return the agent's model that is called ``name``, or its default model if ``name`` is ``""``."""


@declare_question
def agent_defects(path: str, find_file_by_id: Callable[[str], str | None], /) -> Iterable[Defect]:
    """Yield the defects of a session's file. Raise ResumeHooksError if the file can't be read.

    ``find_file_by_id`` returns the file of another session by its id, as ``Agent.find_file_by_id`` does.
    """


@declare_question
def is_content_loss(kind: DefectKind, /) -> bool:
    """Check whether repairing a defect of this kind loses content."""


@declare_question
def run_doctor_check(cwd: str, /) -> Finding:
    """Return the result of one of doctor's checks."""
