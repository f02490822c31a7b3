"""The verbs that archive, delete and restore sessions."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import (
    DRY_RUN,
    PART_OPTIONS,
    YES,
    SessionOptions,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)


class DeleteOptions(VerbOptions, function="resume_hooks.cli.trash:delete_session"):
    """Move SESSION to the trash, with its sub-agents, tool outputs and file backups.

    The trash is in the state folder; ``restore`` restores a session unchanged. Only --empty-trash removes
    anything for good.

    The client cannot resume a session that is in several project folders from another folder.
    --other-copies keeps the copy that contains all the others, or the one that SESSION names by its
    path.

    \b
    Examples:
      resume-hooks delete 5e12a303
      resume-hooks delete "Fix the parser" --yes
      resume-hooks delete 5e12a303 --other-copies --dry-run
      resume-hooks delete --empty-trash --older-than 30
    """

    locator: str | None = argument(
        metavar="[SESSION]", required=False, shell_complete=complete_session
    )
    part_options: Any = PART_OPTIONS
    empty_trash: bool = flag(help="Remove everything in the trash for good.")
    older_than: int | None = option(
        type=click.IntRange(0),
        metavar="DAYS",
        help="With --empty-trash: only sessions deleted at least DAYS ago.",
    )
    damaged: bool = flag(
        help="With --empty-trash: also folders without a readable manifest, of any age."
    )
    yes: bool = YES
    force: bool = flag(help="Even while a client has the session open.")
    dry_run: bool = DRY_RUN


class ArchiveOptions(VerbOptions, function="resume_hooks.cli.archive:archive_or_list_sessions"):
    """Archive sessions in the vault, with all their files, for longer than the client keeps them.

    SESSION defaults to the latest session of this folder. A copy is compressed to about an eighth of the
    size. ``restore`` restores a session; the other verbs read it in the vault. With --verify, --list and
    --forget, SESSION names an archived one.

    --slim is for a session so large that the client hangs. After its archived copy is verified, a
    child is made of its live conversation, with placeholders for images and for contents of 10,000
    characters or more. SESSION stays unchanged. After ``delete``, ``read`` and ``untrim`` still
    find the contents in the vault, and ``restore`` brings SESSION back byte for byte.

    \b
    Examples:
      resume-hooks archive
      resume-hooks archive --project
      resume-hooks archive 5e12a303 "Fix the parser"
      resume-hooks archive --list
      resume-hooks archive --verify
      resume-hooks archive --forget 5e12a303
      resume-hooks archive --slim 5e12a303
    """

    locators: tuple[str, ...] = argument(
        nargs=-1, metavar="[SESSION]...", shell_complete=complete_session
    )
    project: bool = flag(help="Every session of this project.")
    everywhere: bool = flag("--all", help="Every session of every project.")
    verifying: bool = flag(
        "--verify",
        help=(
            "Verify all copies, and packed ones in the trash; the exit code is 1 if one is damaged."
        ),
    )
    listing: bool = flag("--list", help="List the copies.")
    forgetting: bool = flag(
        "--forget", help="Remove the copies of SESSION; the client's files stay."
    )
    slim: bool = flag(help="Then make a copy of SESSION without large images and tool outputs.")
    yes: bool = flag(help="With --forget: do not ask.")
    dry_run: bool = DRY_RUN


class RestoreOptions(SessionOptions, function="resume_hooks.cli.trash:restore_session"):
    """Restore a session, byte for byte, to its path: from the trash, else from the vault.

    SESSION: its id or four or more of the first characters, its title or a part of one, its tag, a
    pull request, or its file's former path. For a session that was deleted more than once, or an
    earlier state in the vault: ID@INSTANT, as --list shows it. A file that is now in its place is
    never overwritten: a session from the vault then gets a new id.

    \b
    Examples:
      resume-hooks restore
      resume-hooks restore 5e12a303
      resume-hooks restore "Fix the parser" --dry-run
      resume-hooks restore 5e12a303@2026-11-22T09-30-00.000Z
    """

    listing: bool = flag("--list", help="List what can be restored, as without SESSION.")
    dry_run: bool = DRY_RUN
