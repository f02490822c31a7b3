"""The output of a verb: text for people, in colour and columns, or a validated JSON document for programs.

Long work shows a progress bar on a terminal.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from resume_hooks.errors import OutputFailed
from resume_hooks.system.invocation import format_remedy
from resume_hooks.system.text import (
    fit_columns,
    plain_line,
    plain_text,
    replace_all_surrogates,
    text_width,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from resume_hooks.transcripts.lines import Line
    from resume_hooks.transcripts.nodes import Node
    from resume_hooks.transcripts.records import Record
    from resume_hooks.transcripts.transcript import Observer

# the variable with which a shell asks for completions; click derives its name from ours
COMPLETING = "_RESUME_HOOKS_COMPLETE"
MAX_CHARACTERS = 8_000  # of a text answer: about 2,000 tokens for a model
SCHEMA = 1
DUMB = "dumb"  # the terminal without escape sequences
_UNSEEN = re.compile(
    "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)  # JSON does not escape these, but terminals act on them

_STYLE = re.compile("(\x1b\\[(?:[0-2]|3[0-7])m)")


class Complete(NamedTuple):
    """Data that already has its verb's form; tests compare the two, so that the form need not be loaded."""

    data: dict[str, Any]


def emit(
    verb: str, data: object, text: Callable[[], str], *, as_json: bool, warnings: Sequence[str] = ()
) -> None:
    """Print a verb's answer; warnings go into the document, or to stderr."""
    if as_json:
        print_document(success_document(verb, data, warnings))
        return
    print_text(text())
    for warning in warnings:
        print_text(f"note: {format_remedy(warning)}", err=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text; the only control characters that reach the terminal are line feeds, tabs and our styles."""
    pieces = enumerate(_STYLE.split(text))  # every second piece is a style
    _put_text(
        "".join(piece if number % 2 else plain_text(piece) for number, piece in pieces), err=err
    )


def print_document(document: dict[str, Any]) -> None:
    """Print one JSON document. Lone surrogates in the input, which JSON cannot encode, become question marks."""
    text = orjson.dumps(replace_all_surrogates(document), option=orjson.OPT_INDENT_2).decode()
    _put_text(_UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def replace_unencodable() -> None:
    """Have characters that the terminal's encoding lacks, such as some of a title, printed as others."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def on_stderr() -> Iterator[None]:
    """Redirect the block's output to stderr, because a shell may capture and run stdout."""
    with redirect_stdout(sys.stderr):
        yield


def _put_text(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    try:
        if stream is None or colour_wanted(os.environ) or stream.isatty():
            from click import echo  # 10 ms, which a program that reads the answer need not wait for

            echo(text, err=err)
        else:
            stream.write(f"{_STYLE.sub('', text)}\n")
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The answer could not be printed: {error.strerror}", "The work itself was done."
        ) from error


def success_document(verb: str, data: object, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return the document of an answer, with data in the form of its verb."""
    if isinstance(data, Complete):
        formed = data.data
    else:
        # pydantic takes 60 ms to load; only JSON output needs it.
        from resume_hooks.cli.schema import check_data

        formed = check_data(verb, data)
    return {"schema": SCHEMA, "verb": verb, "ok": True, "data": formed, "warnings": list(warnings)}


def failure_document(
    verb: str,
    code: str,
    message: str,
    remedy: str,
    candidates: list[dict[str, object]] | None = None,
) -> dict[str, Any]:
    """Return the document of a failure."""
    error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if candidates is not None:
        error["candidates"] = candidates
    return {"schema": SCHEMA, "verb": verb, "ok": False, "error": error}


def facts_table(pairs: Sequence[tuple[str, object]]) -> str:
    """Return facts in two columns, one line each."""
    from click import style  # see _put_text

    width = max(len(name) for name, _ in pairs)
    return "\n".join(
        f"{style(name.ljust(width), dim=True)}  {plain_line(str(value))}" for name, value in pairs
    )


def column_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, room: int = 0
) -> str:
    """Return a table cut to ``room`` columns (0: no limit), with ``words`` left-aligned columns and then numbers."""
    from click import style  # see _put_text

    if not rows:
        return ""
    widths = []
    for place in range(len(heads)):
        widths.append(max(text_width(row[place]) for row in (heads, *rows)))
    lines = []
    for row in (heads, *rows):
        lines.append(
            "  ".join(
                pad_columns(cell, widths[place], right=place >= words)
                for place, cell in enumerate(row)
            ).rstrip()
        )
    first, *others = (fit_columns(line, room) if room else line for line in lines)
    return "\n".join([style(first, dim=True), *others])


def pad_columns(text: str, most: int, *, right: bool = False) -> str:
    """Return ``text`` filled with spaces to ``most`` columns."""
    blanks = " " * (most - text_width(text))
    if right:
        return blanks + text
    return text + blanks


def colour_wanted(environ: Mapping[str, str]) -> bool | None:
    """Return False for no colour, True for colour even in a pipe, None for colour on a terminal alone.

    ``NO_COLOR`` comes first, then ``FORCE_COLOR`` and ``CLICOLOR_FORCE``, then a dumb terminal and
    ``CLICOLOR=0``.
    """
    if environ.get("NO_COLOR"):
        return False
    if any(
        environ.get(name, "0").lower() not in {"", "0", "false"}
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE")
    ):
        return True
    never = (
        environ.get("TERM") == DUMB
        or environ.get("CLICOLOR") == "0"
        or environ.get("FORCE_COLOR") == "0"
    )
    if never:
        return False
    return None


LONG = 32 * 1024 * 1024  # bytes; reading more shows a progress bar
DRAWN = 4 * 1024 * 1024  # bytes between two updates of the bar


@contextmanager
def work_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the bytes done and the total.

    It draws nothing without a terminal.
    """
    bar = _Bar(what)
    shown = not quiet and sys.stderr.isatty()
    try:
        yield bar.advance if shown else lambda _done, _total: None
    finally:
        bar.end()


@contextmanager
def scan_progress(path: str, *, quiet: bool) -> Iterator[list[Observer]]:
    """Yield observers that show the progress of a large file's scan, if a user is waiting.

    They slow down the scan.
    """
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    if quiet or size < LONG or not sys.stderr.isatty():
        yield []
        return
    with work_progress("Reading", quiet=quiet) as advance:
        next_look = 0

        def reached(line: Line, _record: Record, _node: Node | None) -> None:
            nonlocal next_look
            if line.offset >= next_look:
                next_look = line.offset + DRAWN
                advance(line.offset, size)

        yield [reached]


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._drawn: tuple[Progress, TaskID] | None = None

    def advance(self, done: int, total: int) -> None:
        if self._drawn is None:
            if total < LONG:
                return
            # rich takes 50 ms to load; only long work needs it.
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                DownloadColumn(),
                TimeRemainingColumn(),
            )
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            progress.start()
            self._drawn = progress, progress.add_task(self._what, total=total)
        progress, task = self._drawn
        progress.update(task, completed=done)

    def end(self) -> None:
        if self._drawn is not None:
            self._drawn[0].stop()
