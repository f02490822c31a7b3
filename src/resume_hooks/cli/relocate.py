"""A session whose folder or file is missing for the client: fork it into another folder, or restore its file."""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from resume_hooks import questions
from resume_hooks.cli.child import tell_child_made
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import print_text
from resume_hooks.cli.question import AnswerChoice, ask_question
from resume_hooks.cli.start_client import client_environment, start_of_session
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec, fork
from resume_hooks.errors import ResumeHooksError, SessionNotFound
from resume_hooks.paths import Where, canonical_path, project_folder_names
from resume_hooks.seam import answers
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.archived.manifest import archived_of_id
from resume_hooks.sessions.archived.sessions import is_archived_copy, only_archived_left
from resume_hooks.sessions.project_folder import MovedFolder, home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, is_known, session_file
from resume_hooks.system.git_worktrees import command_to_recreate_worktree
from resume_hooks.system.invocation import quote_word
from resume_hooks.transcripts.head_tail import HeadTail

COPY = (
    "A copy of its live conversation becomes a session of the folder you choose; the session "
    "itself stays as it is."
)


class Lost(NamedTuple):
    """A session on which no client can start: the reason, and the possible home folders, best first.

    ``kept`` means that only the vault has a copy, so the session must be restored.
    """

    why: str
    homes: tuple[MovedFolder, ...]
    kept: bool = False

    def refusal(self, session: SessionFile) -> ResumeHooksError:
        """Return the error if the user cannot be asked for a new home."""
        if self.kept:
            return only_archived_left(session.session_id)
        return ResumeHooksError(
            self.why, f"To continue in a copy in another folder: {self.command(session)}"
        )

    def command(self, session: SessionFile) -> str:
        """Return the shell command that forks it into the best home, or restores it."""
        if self.kept:
            return f"resume-hooks restore {session.session_id}"
        if session.path.endswith(f"{session.session_id}.jsonl"):
            named = session.session_id
        else:
            named = session.path
        return (
            f"resume-hooks fork {quote_word(named)} --home "
            f"{quote_word(self.homes[0].folder)} --start"
        )


def find_loss(session: SessionFile, where: Where) -> Lost | None:
    """Return why a session cannot be continued in its place, or None if it can; other agents' always can.

    This only reads.
    """
    if session.agent != NAME:
        return None
    if is_archived_copy(session.path, where):
        return Lost(
            "Its file is gone from the client's folders; the vault has the only copy.",
            (),
            kept=True,
        )
    folder = home_folder(HeadTail(session.path), where)
    begun = start_of_session(session.session_id, session.path, folder, where)
    if not is_known(session, where) and not begun.config:
        why = (
            f"{session.path} lies outside of the client's folders, where claude --resume "
            "does not find it."
        )
        homes = [folder] if os.path.isdir(folder) else []
        return Lost(why, (*(MovedFolder(canonical_path(home)) for home in homes), _current_home()))
    if not os.path.isdir(folder):
        anew = command_to_recreate_worktree(folder, HeadTail(session.path).branch, where)
        if anew:
            again = f" To recreate the worktree: {anew}"
        else:
            again = ""
        why = f"{folder} is gone, the folder of this session.{again}"
        return Lost(why, _possible_homes(session, folder, where))
    name = os.path.basename(os.path.dirname(os.path.abspath(session.path)))
    if name in project_folder_names(folder, Where(client_environment(begun, where))):
        return None
    real, kept = canonical_path(folder), os.path.dirname(session.path)
    if real != folder:
        whither = f"{folder} now leads to {real}"
    else:
        whither = f"This session belongs to {folder}"
    why = f"{whither}, so clients before 2.1.223 do not look for it in {kept}."
    home = MovedFolder(real)
    return Lost(why, (home, *(place for place in (_current_home(),) if place.folder != real)))


def command_to_continue(session: SessionFile, folder: str, where: Where) -> str:
    """Return the command that continues a session of ``folder``, or that first gives it a new home."""
    found = find_loss(session, where)
    if found:
        return found.command(session)
    return start_of_session(session.session_id, session.path, folder, where).command


def bring_back(session: SessionFile, found: Lost, where: Where) -> SessionFile:
    """Ask whether to restore an archived session, and restore it. Raise click.Abort if the user says no."""
    print_text(found.why)
    click.confirm("Restore it and continue?", default=True, abort=True)
    # The restore module takes 10 ms to load; only a missing session needs it.
    from resume_hooks.archive.vault import restore

    kept = archived_of_id(session.session_id, where)
    if kept is None:
        raise SessionNotFound(
            f"{session.session_id} is gone from the vault", "resume-hooks archive --list"
        )
    done = restore.restore_session(restore.plan_restore(kept, where), where)
    for warning in done.warnings:
        print_text(f"note: {warning}", err=True)
    return session_file(done.path)


def make_child_in_new_home(session: SessionFile, found: Lost, where: Where) -> SessionFile:
    """Ask for a new home folder and create the child there. Raise click.Abort if the user leaves."""
    print_text(found.why)
    here = _current_home().folder
    choices = []
    for place in found.homes:
        choices.append(
            AnswerChoice(
                place.folder,
                place.why
                or (
                    "the current folder" if place.folder == here else "the folder that it leads to"
                ),
            )
        )
    chosen = found.homes[ask_question(COPY, choices)]
    receipt = fork(Session.of(session, where), ForkSpec(home=chosen.folder), Caller(where)).receipt
    tell_child_made(receipt)
    for note_on_other_sessions in answers(questions.note_on_other_sessions):
        former = home_folder(HeadTail(session.path), where)
        if note := note_on_other_sessions(former, chosen.folder, where):
            print_text(f"note: {note}", err=True)
    return session_file(receipt.file)


def _possible_homes(session: SessionFile, folder: str, where: Where) -> tuple[MovedFolder, ...]:
    """Return the folders that the parts suggest, then the current one."""
    here = _current_home()
    found = []
    for homes_of_session in answers(questions.homes_of_session):
        found += homes_of_session(session.path, folder, here.folder, where)
    if here.folder not in {place.folder for place in found}:
        found.append(here)
    return tuple(found)


def _current_home() -> MovedFolder:
    return MovedFolder(canonical_path(current_folder()))
