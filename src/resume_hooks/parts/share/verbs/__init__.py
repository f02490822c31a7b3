"""Define the command-line options of export, share and import."""

from __future__ import annotations

import click

from resume_hooks.cli.options import (
    DRY_RUN_OPTION,
    YES_OPTION,
    OneSessionOptions,
    VerbOptions,
    argument,
    flag,
    option,
)
from resume_hooks.parts.share.export import DOCUMENT_FORMATS, MAX_TEXT_CHARACTERS
from resume_hooks.storage.staging import MAX_IMPORT_BYTES


class ExportOptions(
    OneSessionOptions, function="resume_hooks.parts.share.verbs.export:export_session"
):
    """Write SESSION as a document: a page (html), Markdown (md), or a bundle for import (json).

    The page is one file that needs no network. It shows turns, calls and diffs, and can be searched
    and printed. It contains the conversation that led to the session's end, including compacted
    parts and sub-agents. Secrets are removed and counted, but images are not checked.

    \b
    Examples:
      resume-hooks export
      resume-hooks export 1a2b3c4d -o ~/talk.html
      resume-hooks export 1a2b3c4d --format md -o - | less
      resume-hooks export 1a2b3c4d --format json --lineage -o bundle.json
    """

    document_format: str | None = option(
        "--format",
        type=click.Choice(DOCUMENT_FORMATS),
        help="The format. The default is the format that the file extension of -o names, or else html.",
    )
    output: str | None = option(
        "-o",
        "--output",
        "--out",
        metavar="FILE",
        help="The file or folder to write to; - for the standard output.",
    )
    lineage: bool = flag(help="Include all ancestors, oldest first.")
    includes_all_branches: bool = flag("--all", help="Include abandoned branches.")
    includes_only_live_records: bool = flag(
        "--live",
        help="Include only the records that a resume would send, and none from before a compaction.",
    )
    thinking: bool = option(
        "--thinking/--no-thinking",
        default=True,
        help="Include the model's thinking (the default), or leave it out.",
    )
    max_chars: int = option(
        type=click.IntRange(0),
        default=MAX_TEXT_CHARACTERS,
        show_default=True,
        help="Maximum number of characters of each text; 0 for no limit.",
    )
    redact: bool = option(
        "--redact/--no-redact",
        default=True,
        help="Remove secrets and home folders (the default), or leave them in.",
    )
    force: bool = flag(help="Replace an existing file.")
    dry_run: bool = DRY_RUN_OPTION


class ShareOptions(
    OneSessionOptions, function="resume_hooks.parts.share.verbs.share:share_session"
):
    """Write SESSION to one file for a colleague: a page for any browser, which can also be imported.

    Secrets and home folders are removed from the page and from the session in it. The command first
    shows how many secrets of each kind it removes, and writes the file only after you confirm. It
    sends nothing. Images are not checked. The page needs no script, loads nothing, and lists what
    was removed. Your colleague can read it, or continue the session with resume-hooks import FILE or
    resume-hooks resume FILE. A file that was truncated or changed is rejected.

    \b
    Examples:
      resume-hooks share
      resume-hooks share 5e12a303 --dry-run
      resume-hooks share "Fix the parser" -o ~/parser.html
      resume-hooks share 5e12a303 --lineage --yes --json
    """

    output: str | None = option("-o", metavar="FILE", help="The file or folder to write to.")
    lineage: bool = flag(help="Include all ancestors, oldest first.")
    force: bool = flag(help="Replace an existing file.")
    yes: bool = YES_OPTION
    dry_run: bool = DRY_RUN_OPTION


class ImportOptions(
    VerbOptions, function="resume_hooks.parts.share.verbs.import_:import_transcript"
):
    """Import a transcript as a new session in this folder.

    FILE is the path of a .jsonl file, optionally compressed with gzip; - stands for the standard input.
    Only the conversation that a client would send is imported, with title and tag. Modes,
    permissions, hook texts and links are left out.

    If FILE is a page that share wrote, or a bundle (export --format json), all its sessions are
    imported into this folder, and remain linked to each other. With --whole, they are restored
    unchanged, with large outputs and sub-agents. Only use --whole for your own bundles.

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
        help="The new session's folder; by default the current folder.",
    )
    max_bytes: int = option(
        type=click.IntRange(1),
        default=MAX_IMPORT_BYTES,
        show_default=True,
        metavar="N",
        help="Maximum size.",
    )
    force: bool = flag(help="Create another session even if the same file was imported before.")
    imports_every_record: bool = flag(
        "--whole", help="For your own bundles: import every record and file, and keep the ids."
    )
    start: bool = flag(help="Start the client on the new session.")
    dry_run: bool = DRY_RUN_OPTION
