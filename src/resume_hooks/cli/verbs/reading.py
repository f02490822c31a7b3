"""The verbs that read a session."""

from __future__ import annotations

import click

from resume_hooks.cli.options import (
    MAX_CHARS_OPTION,
    OneSessionOptions,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)
from resume_hooks.reading.char_budget import MAX_WHOLE_RECORD_CHARACTERS

DEFAULT_PAGE_RECORDS = 100  # the default number of records on a page


class OutlineOptions(OneSessionOptions, function="resume_hooks.cli.outline:show_outline"):
    """Show the turns of a session, one line each: the prompt, the tools, the files, the context size.

    SESSION may be <session>/agent-<id>, a sub-agent. Turns are numbered in file order, so a number
    stays the same when the session grows or is compacted. The number at the end of a line is a
    reference for `read`.

    \b
    Examples:
      resume-hooks outline
      resume-hooks outline 1a2b3c4d --turns 40-60
      resume-hooks outline 1a2b3c4d --file src/parser.py
      resume-hooks outline 1a2b3c4d/agent-a63d21c --json
    """

    turn_range: str | None = option(
        "--turns",
        metavar="A-B",
        help="Show only these turns: 12, 12-15, 12-, last, or -3 (the last three).",
    )
    touched_file: str | None = option(
        "--file", metavar="PATH", help="Show only turns in which a tool read or wrote this file."
    )
    max_chars: int = MAX_CHARS_OPTION


class ReadOptions(VerbOptions, function="resume_hooks.cli.read:print_records"):
    """Print records of a session: a single record (REF), or several records of SESSION.

    REF is <session>:<record>. <session> is an id, four or more of its first characters, or the path of
    a .jsonl file; <record> is a line number (counted from 0), a uuid, or @ followed by the byte offset
    of its line, as printed by --page. Trimmed contents are printed in their original form. A sub-agent
    is <session>/agent-<id>. If a text is too long, the output names the command that prints the rest.
    --max-chars limits the whole output. For a single record it limits the record's text, and the last
    line names the command for the next page.

    --page prints the last records of the file, or those directly before the record that --before
    names. That page stays the same while the session grows. A large file takes no longer than a small
    one.

    \b
    Examples:
      resume-hooks read 1a2b3c4d:56
      resume-hooks read 1a2b3c4d:3 --skip 19876
      resume-hooks read 1a2b3c4d:56 --before 3 --after 5
      resume-hooks read 1a2b3c4d --turns 12-15
      resume-hooks read 1a2b3c4d --errors
      resume-hooks read 1a2b3c4d --commands --turns -3
      resume-hooks read 1a2b3c4d --page --limit 50 --json
      resume-hooks read 1a2b3c4d --page --before 1a2b3c4d:@7348 --limit 50 --json
      resume-hooks read 1a2b3c4d/agent-a63d21c:12 --raw > record.json
    """

    reference_or_session: str | None = argument(
        metavar="REF|SESSION", required=False, shell_complete=complete_session
    )
    count_or_id_before: str | None = option(
        "--before",
        metavar="N|ID",
        help="With REF: also print the N records before it. "
        "With --page: print the page that ends before the record with this id.",
    )
    following_record_count: int | None = option(
        "--after",
        type=click.IntRange(0),
        metavar="N",
        help="With REF: also print the N records after it.",
    )
    turn_range: str | None = option(
        "--turns",
        metavar="A-B",
        help="Print these turns: 12, 12-15, 12-, last, or -3 (the last three).",
    )
    only_errors: bool = flag("--errors", help="Print only failed tool results and API errors.")
    only_commands: bool = flag(
        "--commands", help="Print the shell commands with their results, one command per line."
    )
    as_page: bool = flag(
        "--page",
        help="Print the last records or, with --before ID, the records directly before the record with that id.",
    )
    page_size: int | None = option(
        "--limit",
        type=click.IntRange(1, 10_000),
        help=f"Number of records on a page.  [default: {DEFAULT_PAGE_RECORDS}]",
    )
    session: str | None = option(
        metavar="SESSION", help="The session, if REF is only a line number or a uuid."
    )
    max_chars: int = option(
        type=click.IntRange(0),
        default=MAX_WHOLE_RECORD_CHARACTERS,
        show_default=True,
        help="Maximum number of characters of the text; 0 for no limit.",
    )
    skipped_character_count: int = option(
        "--skip",
        type=click.IntRange(0),
        default=0,
        help="With REF: skip this number of characters at the beginning of the record.",
    )
    as_raw_line: bool = flag(
        "--raw", help="With REF: print the record's line from the file unchanged."
    )
