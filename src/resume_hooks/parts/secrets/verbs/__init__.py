"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.cli.options import ChildOptions, SessionOptions, flag, option


class AuditOptions(SessionOptions, body="resume_hooks.parts.secrets.verbs.audit:audit_secrets"):
    """List the secrets in a session by kind, place and age, never the secrets themselves.

    Looked at are the transcript, sub-agents, tool output in files of its own, states of files that the client kept,
    backups, the trash and the vault. What was looked at before and has not changed since is not read again. Ends with
    1 where there are secrets, or places that could not be looked at. Without SESSION, --project or --all it is about
    the latest session of this folder alone, not those that came from it.

    \b
    Examples:
      resume-hooks audit
      resume-hooks audit 5e12a303 --json
      resume-hooks audit --project --since 7d
      resume-hooks audit --all --kind github-pat --kind private-key
    """

    everywhere: bool = flag("--all", help="Every session of every project, and our own notes.")
    project: bool = flag(help="Every session of this project.")
    since: str | None = option(metavar="WHEN", help=f"Only what is younger. {clock.WHEN}")
    kinds: tuple[str, ...] = option(
        "--kind", metavar="KIND", multiple=True, help="Only secrets of this kind; may be given often."
    )


class ScrubOptions(ChildOptions, body="resume_hooks.parts.secrets.verbs.scrub:scrub"):
    """Make a child of SESSION without its secrets, and list every place that holds them.

    The session itself is only read. With --in-place its own files are rewritten instead, and the secrets go from its
    sub-agents, tool outputs, backups, the trash, the vault, the index, and the sessions that came from it. Each file is
    replaced whole or not at all; no backup is kept. What is already known to others stays known: revoke the secret.

    \b
    Examples:
      resume-hooks scrub 5e12a303
      resume-hooks scrub 5e12a303 --in-place --dry-run
      resume-hooks scrub 5e12a303 --in-place --client --yes
      resume-hooks scrub --secret-stdin < secret.txt
    """

    in_place: bool = flag(help="Take them out of the session, every copy of it, and its children.")
    kind: tuple[str, ...] = option(multiple=True, metavar="KIND", help="Secrets of this kind alone, as audit names it.")
    secret_stdin: bool = flag(help="Also the secrets on stdin, one a line; on a terminal it asks.")
    lineage: bool = flag(help="With --in-place: also the sessions that it came from.")
    everywhere: bool = flag(help="With --in-place: also any other session that holds them.")
    backups: bool = flag(help="With --in-place: also copies of your files that a rewind puts back.")
    documents: bool = flag(help="With --in-place: also what handoffs wrote into the project.")
    client: bool = flag(help="With --in-place: also the client's own files, such as history.jsonl.")
    yes: bool = flag(help="Do not ask.")
