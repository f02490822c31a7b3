"""The command-line options of the verb ``rewind-files``."""

from __future__ import annotations

from resume_hooks.cli.options import (
    DRY_RUN_OPTION,
    YES_OPTION,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)


class RewindFilesOptions(
    VerbOptions, function="resume_hooks.parts.rewind_files.verbs.rewind_files:rewind_files"
):
    """Restore the tracked files of SESSION to their state at a message, before the model worked on it.

    The states come from the client's file backups. The client backs up files before its editing
    tools change them, but not before a shell command changes them. All changes are shown first.
    Files that will be overwritten or removed are copied to the state folder, and --undo restores
    them. Files outside the project, files behind symbolic links and git's own files are not changed.
    If there are such files, or if a backup is missing, no file is changed unless you give
    --partial. The conversation is not changed.

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
    prompt_reference: str | None = option(
        "--to",
        metavar="TURN|UUID|REF",
        help="The message: the number of a turn, the word 'last', a uuid, or <session>:<line>.",
    )
    undo: bool = flag(
        help="Undo the last run for this session; repeat the command to redo the run."
    )
    yes: bool = YES_OPTION
    allows_partial_restore: bool = flag(
        "--partial", help="Restore what is possible, even if some files can't be restored."
    )
    dry_run: bool = DRY_RUN_OPTION
