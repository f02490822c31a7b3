"""The command-line options of the scrub verb."""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.cli.options import ChildOptions, flag, option


class ScrubOptions(ChildOptions, function="resume_hooks.parts.secrets.verbs.scrub:scrub_session"):
    """Make a child of SESSION without its secrets, and list every place that contains them.

    The session itself is only read. With --in-place its own files are rewritten instead, and the
    secrets are removed from its sub-agents, tool outputs, backups, the trash, the vault, the index,
    and its children. Each file is replaced completely or not at all, without a backup. Copies that
    others already have are out of reach: revoke the secret.

    With --list, nothing is written. The list shows the kind, place and age of each secret, but not
    the secret itself. The search covers the transcript, sub-agents, separate tool outputs, file
    states that the client saved, backups, the trash and the vault. Unchanged files are not read
    again. The exit code is 1 if secrets were found, or if a file could not be read. Without SESSION,
    --project or --all, only the latest session of this folder is searched, without its children.

    \b
    Examples:
      resume-hooks scrub --list
      resume-hooks scrub --list --project --since 7d
      resume-hooks scrub --list --all --kind github-pat --kind private-key
      resume-hooks scrub 5e12a303
      resume-hooks scrub 5e12a303 --in-place --dry-run
      resume-hooks scrub 5e12a303 --in-place --client --yes
      resume-hooks scrub --secret-stdin < secret.txt
    """

    must_list_secrets: bool = flag("--list", help="List the secrets and write nothing.")
    all_sessions: bool = flag(
        "--all", help="With --list: every session of every project, and the state folder."
    )
    whole_project: bool = flag("--project", help="With --list: every session of this project.")
    since: str | None = option(
        metavar="WHEN",
        help=f"With --list: only secrets that were written since this time. {clock.TIME_EXAMPLES}",
    )
    in_place: bool = flag(
        help="Remove the secrets from the session, all its copies, and its children."
    )
    kinds: tuple[str, ...] = option(
        "--kind",
        multiple=True,
        metavar="KIND",
        help="Only secrets of this kind. --list shows the names of the kinds.",
    )
    must_read_secrets_from_stdin: bool = flag(
        "--secret-stdin",
        help="Also remove the secrets on stdin, one per line. On a terminal, you are asked for one secret.",
    )
    include_ancestors: bool = flag(
        "--lineage", help="With --in-place: also scrub the session's ancestors."
    )
    include_other_sessions: bool = flag(
        "--everywhere",
        help="With --in-place: also scrub all other sessions that contain these secrets.",
    )
    include_file_backups: bool = flag(
        "--backups",
        help="With --in-place: also scrub the backups from which rewind-files restores.",
    )
    include_documents: bool = flag(
        "--documents",
        help="With --in-place: also scrub documents that handoffs wrote into the project.",
    )
    include_client_files: bool = flag(
        "--client",
        help="With --in-place: also scrub the client's own files, such as history.jsonl.",
    )
    yes: bool = flag(help="Do not ask.")
