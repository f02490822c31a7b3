"""The command-line options of the verb ``rewind-files``."""

from __future__ import annotations

from resume_hooks.cli.options import (
    DRY_RUN,
    YES,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)


class RewindFilesOptions(
    VerbOptions, function="resume_hooks.parts.rewind_files.verbs.rewind_files:rewind_files"
):
    """Restore the files that SESSION tracked to their state when a message was sent, before the work on it.

    The states are the client's file backups, which cover files that its editing tools wrote, but
    not changes by shell commands. All changes are shown first. Overwritten and removed files are
    copied to the state folder, and --undo brings them back. Files outside the project, behind
    links, or of git are left alone. If there are such files, or a backup is gone, nothing is
    written without --partial. The conversation stays as it is.

    \b
    Examples:
      resume-hooks rewind-files --to 12 --dry-run
      resume-hooks rewind-files 5e12a303 --to last
      resume-hooks rewind-files --to 5e12a303:340 --yes
      resume-hooks rewind-files 5e12a303 --undo
    """

    locator: str | None = argument(
        metavar="[SESSION]", required=False, shell_complete=complete_session
    )
    to: str | None = option(
        metavar="TURN|UUID|REF",
        help="The message: a turn's number, last, a uuid, or <session>:<line>.",
    )
    undo: bool = flag(
        help="Undo the last run for this session; repeat the command to redo the run."
    )
    yes: bool = YES
    partial: bool = flag(help="Restore what is possible, even if some files can't be restored.")
    dry_run: bool = DRY_RUN
