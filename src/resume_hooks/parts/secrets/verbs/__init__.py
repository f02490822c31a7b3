"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.cli.options import ChildOptions, flag, option


class ScrubOptions(ChildOptions, body="resume_hooks.parts.secrets.verbs.scrub:scrub_session"):
    """Make a child of SESSION without its secrets, and list every place that holds them.

    The session itself is only read. With --in-place its own files are rewritten instead, and the
    secrets go from its sub-agents, tool outputs, backups, the trash, the vault, the index, and the
    sessions that came from it. Each file is replaced whole or not at all; no backup is kept. What
    is already known to others stays known: revoke the secret.

    With --list nothing is written: it tells each secret's kind, place and age, never the secret.
    Looked at are the transcript, sub-agents, tool output in files of its own, states of files that
    the client kept, backups, the trash and the vault. What was looked at before and has not changed
    since is not read again. Ends with 1 where there are secrets, or places that could not be looked
    at. Without SESSION, --project or --all it is about the latest session of this folder alone, not
    those that came from it.

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

    listed: bool = flag("--list", help="List them; write nothing.")
    all_sessions: bool = flag(
        "--all", help="With --list: every session of every project, and our own notes."
    )
    project: bool = flag(help="With --list: every session of this project.")
    since: str | None = option(
        metavar="WHEN", help=f"With --list: only what is younger. {clock.TIME_EXAMPLES}"
    )
    in_place: bool = flag(help="Take them out of the session, every copy of it, and its children.")
    kind: tuple[str, ...] = option(
        multiple=True, metavar="KIND", help="Secrets of this kind alone, as --list names it."
    )
    secret_stdin: bool = flag(help="Also the secrets on stdin, one a line; on a terminal it asks.")
    lineage: bool = flag(help="With --in-place: also the sessions that it came from.")
    everywhere: bool = flag(help="With --in-place: also any other session that holds them.")
    backups: bool = flag(help="With --in-place: also file backups, which rewind-files puts back.")
    documents: bool = flag(help="With --in-place: also what handoffs wrote into the project.")
    client: bool = flag(help="With --in-place: also the client's own files, such as history.jsonl.")
    yes: bool = flag(help="Do not ask.")
