"""The verbs that archive, delete and restore sessions."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import (
    DRY_RUN_OPTION,
    PART_OPTIONS,
    YES_OPTION,
    OneSessionOptions,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)


class DeleteOptions(VerbOptions, function="resume_hooks.cli.trash:delete_session"):
    """Move SESSION to the trash, with its sub-agents, tool outputs and file backups.

    The trash is in the state folder; ``restore`` restores a session unchanged. Only --empty-trash
    removes files for good.

    If copies of a session are in several project folders, the client can't resume the session from
    any other folder. --other-copies deletes all copies but one. It keeps the copy that has all
    records of the others, or the copy whose path is SESSION.

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
    min_age_days: int | None = option(
        "--older-than",
        type=click.IntRange(0),
        metavar="DAYS",
        help="With --empty-trash: remove only sessions deleted at least DAYS ago.",
    )
    include_damaged_folders: bool = flag(
        "--damaged",
        help="With --empty-trash: also remove folders without a readable manifest, of any age.",
    )
    yes: bool = YES_OPTION
    force: bool = flag(help="Delete the session even if a client has it open.")
    dry_run: bool = DRY_RUN_OPTION


class ArchiveOptions(VerbOptions, function="resume_hooks.cli.archive:archive_or_list_sessions"):
    """Archive sessions in the vault, with all their files, for longer than the client keeps them.

    SESSION defaults to the latest session of this folder. A copy is compressed to about an eighth of the
    size. ``restore`` restores a session; other verbs read the session in the vault. With --verify, --list
    and --forget, SESSION names an archived session.

    --slim is for a session so large that the client hangs. It archives SESSION and verifies the
    archived copy. Then it copies the live conversation into a child, with placeholders for images
    and for contents of 10,000 characters or more. SESSION stays unchanged. If you delete SESSION
    afterwards, ``read`` and ``untrim`` still find the contents in the vault, and ``restore``
    restores SESSION byte for byte.

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
    whole_project: bool = flag("--project", help="Archive every session of this project.")
    everywhere: bool = flag("--all", help="Archive every session of every project.")
    must_verify: bool = flag(
        "--verify",
        help=(
            "Verify all archived copies, and compressed sessions in the trash; exit with 1 if one is damaged."
        ),
    )
    must_list: bool = flag("--list", help="List the archived copies.")
    must_forget: bool = flag(
        "--forget", help="Remove the archived copies of SESSION; the client's files stay."
    )
    must_slim: bool = flag(
        "--slim", help="Archive SESSION, then copy it without images and long contents."
    )
    yes: bool = flag(help="With --forget: do not ask.")
    dry_run: bool = DRY_RUN_OPTION


class RestoreOptions(OneSessionOptions, function="resume_hooks.cli.trash:restore_session"):
    """Restore a session byte for byte to its path, from the trash or else from the vault.

    SESSION is an id or at least four of its first characters, a title or a part of one, a tag, a
    pull request, or the former path of the file. For a session that was deleted more than once, or
    for an earlier state in the vault, SESSION is ID@TIME, as --list shows it. If another file now has the
    session's path, that file is not overwritten: a session from the vault gets a new id.

    \b
    Examples:
      resume-hooks restore
      resume-hooks restore 5e12a303
      resume-hooks restore "Fix the parser" --dry-run
      resume-hooks restore 5e12a303@2026-11-22T09-30-00.000Z
    """

    must_list: bool = flag(
        "--list",
        help="List the sessions that can be restored. This is the default without SESSION.",
    )
    dry_run: bool = DRY_RUN_OPTION
