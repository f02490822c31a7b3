"""The verbs of this part, as they are declared."""

from __future__ import annotations

import click

from resume_hooks.cli.options import (
    DRY_RUN,
    YES,
    SessionOptions,
    VerbOptions,
    argument,
    flag,
    option,
)
from resume_hooks.parts.share.export import FORMS, LIMIT
from resume_hooks.storage.staging import MAX_BYTES


class ExportOptions(SessionOptions, body="resume_hooks.parts.share.verbs.export:export_session"):
    """Write SESSION as a document: a page (html), Markdown (md), or a bundle to be imported (json).

    The page is one file without any network: turns fold, calls and diffs are shown, and it can be
    searched and printed. It tells the conversation that led to the session's end, also what was
    compacted, with its sub-agents. Secrets are taken out and counted; images are not looked into.

    \b
    Examples:
      resume-hooks export
      resume-hooks export 1a2b3c4d -o ~/talk.html
      resume-hooks export 1a2b3c4d --format md -o - | less
      resume-hooks export 1a2b3c4d --format json --lineage -o bundle.json
    """

    form: str | None = option(
        "--format", type=click.Choice(FORMS), help="By default that of -o's name, else html."
    )
    output: str | None = option(
        "-o",
        "--output",
        "--out",
        metavar="FILE",
        help="The file or folder to write to; - for the standard output.",
    )
    lineage: bool = flag(help="With all ancestors, oldest first.")
    everything: bool = flag("--all", help="Also what was said on branches that were left.")
    live: bool = flag(help="Only what a resume would send: nothing from before a compaction.")
    thinking: bool = option(
        "--thinking/--no-thinking", default=True, help="With what the model thought, or without."
    )
    max_chars: int = option(
        type=click.IntRange(0), default=LIMIT, show_default=True, help="Of one text; 0 for all."
    )
    redact: bool = option(
        "--redact/--no-redact",
        default=True,
        help="Take secrets and home folders out (the default), or not.",
    )
    force: bool = flag(help="Replace a file that is there.")
    dry_run: bool = DRY_RUN


class ShareOptions(SessionOptions, body="resume_hooks.parts.share.verbs.share:share_session"):
    """Write SESSION as one file for a colleague: a page for any browser, with the session in it for ``import``.

    Secrets and home folders are taken out of both. What that came to is shown first, as counts by
    kind, and you are asked; nothing is written, or sent anywhere, before. The page needs no script
    to be read and fetches nothing; it tells on its top what was taken out. Images are not looked
    into. Your colleague reads it, then types resume-hooks import FILE, or resume FILE; a file that
    was cut short or changed is refused.

    \b
    Examples:
      resume-hooks share
      resume-hooks share 5e12a303 --dry-run
      resume-hooks share "Fix the parser" -o ~/parser.html
      resume-hooks share 5e12a303 --lineage --yes --json
    """

    output: str | None = option("-o", metavar="FILE", help="The file or folder to write to.")
    lineage: bool = flag(help="With all ancestors, oldest first.")
    force: bool = flag(help="Replace a file that is there.")
    yes: bool = YES
    dry_run: bool = DRY_RUN


class ImportOptions(VerbOptions, body="resume_hooks.parts.share.verbs.import_:import_transcript"):
    """Bring a transcript in as a new session of this folder.

    FILE is the path of a .jsonl file, packed by gzip or not; - is the standard input. Only the
    conversation that a client would send is taken over, with title and tag; modes, permissions,
    hooks' texts and links are left out.

    Of a page that share wrote, and of a bundle (export --format json), every session becomes one of
    this folder, linked as they were there. With --whole, which only a bundle of your own deserves,
    they are moved as they are, with their large outputs and sub-agents.

    \b
    Examples:
      resume-hooks import ~/Downloads/session.jsonl --start
      curl https://example.com/sessions/parser.jsonl | resume-hooks import -
      resume-hooks import ~/Downloads/fix-the-parser-5e12a303.html
      resume-hooks import parser.bundle.json --whole
    """

    source: str = argument(metavar="FILE")
    home: str | None = option(
        type=click.Path(exists=True, file_okay=False),
        help="Its folder; by default the current one.",
    )
    max_bytes: int = option(
        type=click.IntRange(1),
        default=MAX_BYTES,
        show_default=True,
        metavar="N",
        help="Take no more in.",
    )
    force: bool = flag(help="Make another session where the same was imported before.")
    whole: bool = flag(help="Of a bundle of your own: every record and file in it, ids kept.")
    start: bool = flag(help="Start the client on the new session.")
    dry_run: bool = DRY_RUN
