"""Handle a session that the client can't resume because its folder or file was moved or deleted.

The user can copy the session into another folder, or restore its file from the vault.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from resume_hooks import questions
from resume_hooks.cli.ask_question import AnswerChoice, ask_question
from resume_hooks.cli.child import print_child_note
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import print_text
from resume_hooks.cli.start_client import find_client_start, make_client_environment
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec, fork
from resume_hooks.errors import ResumeHooksError, SessionNotFound
from resume_hooks.paths import Where, canonical_path, project_folder_names
from resume_hooks.seam import find_answers
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.archived.manifest import find_archived
from resume_hooks.sessions.archived.sessions import is_archived_copy, make_no_client_file_error
from resume_hooks.sessions.project_folder import MovedFolder, home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, can_client_resume, session_file
from resume_hooks.system.git_worktrees import command_to_recreate_worktree
from resume_hooks.system.invocation import quote_word
from resume_hooks.transcripts.head_tail import HeadTail

CHOOSE_FOLDER_QUESTION = (
    "Choose the folder for a copy of the session's live conversation. The session itself stays "
    "as it is."
)


class StartObstacle(NamedTuple):
    """Why the client can't start on a session, and the folders into which the session could be copied.

    The best folder comes first. If ``is_archived``, only the vault has the session, so the session
    must be restored.
    """

    reason: str
    candidate_folders: tuple[MovedFolder, ...]
    is_archived: bool = False

    def make_cannot_start_error(self, session: SessionFile) -> ResumeHooksError:
        """Return the error for a verb that cannot ask the user for another folder."""
        if self.is_archived:
            return make_no_client_file_error(session.session_id)
        return ResumeHooksError(
            self.reason,
            f"To continue in a copy in another folder: {self.command_to_continue(session)}",
        )

    def command_to_continue(self, session: SessionFile) -> str:
        """Return the command that continues the session.

        The command restores the session from the vault, or copies it to the first candidate folder
        and starts the client.
        """
        if self.is_archived:
            return f"resume-hooks restore {session.session_id}"
        if session.path.endswith(f"{session.session_id}.jsonl"):
            locator = session.session_id
        else:
            locator = session.path
        return (
            f"resume-hooks fork {quote_word(locator)} --home "
            f"{quote_word(self.candidate_folders[0].folder)} --start"
        )


def find_start_obstacle(session: SessionFile, where: Where) -> StartObstacle | None:
    """Return why the client can't start on a session, or None if it can. Nothing is changed or restored.

    The result is always None for a session of another agent.
    """
    if session.agent != CLAUDE_NAME:
        return None
    if is_archived_copy(session.path, where):
        return StartObstacle(
            "The session's file is gone from the client's folders; the vault has the only copy.",
            (),
            is_archived=True,
        )
    folder = home_folder_of_session(HeadTail(session.path), where)
    start = find_client_start(session.session_id, session.path, folder, where)
    if not can_client_resume(session, where) and not start.config_home:
        reason = (
            f"{session.path} is outside the client's folders, so claude --resume does not find it."
        )
        homes = [folder] if os.path.isdir(folder) else []
        return StartObstacle(
            reason,
            (
                *(MovedFolder(canonical_path(home)) for home in homes),
                _make_candidate_of_current_folder(),
            ),
        )
    if not os.path.isdir(folder):
        rebuild_command = command_to_recreate_worktree(folder, HeadTail(session.path).branch, where)
        if rebuild_command:
            rebuild_hint = f" To recreate the worktree: {rebuild_command}"
        else:
            rebuild_hint = ""
        reason = f"The folder of this session no longer exists: {folder}.{rebuild_hint}"
        return StartObstacle(reason, _list_candidate_folders(session, folder, where))
    name = os.path.basename(os.path.dirname(os.path.abspath(session.path)))
    if name in project_folder_names(folder, Where(make_client_environment(start, where))):
        return None
    real_folder, transcript_folder = canonical_path(folder), os.path.dirname(session.path)
    if real_folder != folder:
        folder_text = f"{folder} now leads to {real_folder}"
    else:
        folder_text = f"This session belongs to {folder}"
    reason = f"{folder_text}, so clients before 2.1.223 do not look for it in {transcript_folder}."
    home = MovedFolder(real_folder)
    return StartObstacle(
        reason,
        (
            home,
            *(
                other_home
                for other_home in (_make_candidate_of_current_folder(),)
                if other_home.folder != real_folder
            ),
        ),
    )


def command_to_continue(session: SessionFile, folder: str, where: Where) -> str:
    """Return the shell command that starts the client on a session.

    ``folder`` is the session's project folder. If the client can't start on the session, the
    command first copies or restores the session.
    """
    obstacle = find_start_obstacle(session, where)
    if obstacle:
        return obstacle.command_to_continue(session)
    return find_client_start(session.session_id, session.path, folder, where).command


def restore_archived_session(
    session: SessionFile, obstacle: StartObstacle, where: Where
) -> SessionFile:
    """Ask whether to restore an archived session, restore it, and return the restored session.

    Raise click.Abort if the user says no.
    """
    print_text(obstacle.reason)
    click.confirm("Restore the session and continue?", default=True, abort=True)
    # Imported late: the import takes 10 ms, and only an archived session needs it.
    from resume_hooks.archive.vault import restore

    archived = find_archived(session.session_id, where)
    if archived is None:
        raise SessionNotFound(
            f"{session.session_id} is gone from the vault", "resume-hooks archive --list"
        )
    restored = restore.execute_restore_plan(restore.plan_restore(archived, where), where)
    for warning in restored.warnings:
        print_text(f"note: {warning}", err=True)
    return session_file(restored.target_path)


def copy_into_chosen_folder(
    session: SessionFile, obstacle: StartObstacle, where: Where
) -> SessionFile:
    """Ask the user for another folder, copy the session into that folder, and return the copy.

    Raise click.Abort if the user leaves.
    """
    print_text(obstacle.reason)
    current_path = _make_candidate_of_current_folder().folder
    choices = []
    for home in obstacle.candidate_folders:
        choices.append(
            AnswerChoice(
                home.folder,
                home.evidence
                or (
                    "the current folder"
                    if home.folder == current_path
                    else "the folder to which the link leads"
                ),
            )
        )
    chosen_home = obstacle.candidate_folders[ask_question(CHOOSE_FOLDER_QUESTION, choices)]
    receipt = fork(
        Session.from_file(session, where), ForkSpec(home=chosen_home.folder), Caller(where)
    ).receipt
    print_child_note(receipt)
    for note_on_other_sessions in find_answers(questions.note_on_other_sessions):
        former_home = home_folder_of_session(HeadTail(session.path), where)
        if note := note_on_other_sessions(former_home, chosen_home.folder, where):
            print_text(f"note: {note}", err=True)
    return session_file(receipt.file)


def _list_candidate_folders(
    session: SessionFile, folder: str, where: Where
) -> tuple[MovedFolder, ...]:
    """Return the folders that installed parts suggest for a session, followed by the current folder."""
    current_home = _make_candidate_of_current_folder()
    homes = []
    for likely_folders_of_session in find_answers(questions.likely_folders_of_session):
        homes += likely_folders_of_session(session.path, folder, current_home.folder, where)
    if current_home.folder not in {home.folder for home in homes}:
        homes.append(current_home)
    return tuple(homes)


def _make_candidate_of_current_folder() -> MovedFolder:
    return MovedFolder(canonical_path(current_folder()))
