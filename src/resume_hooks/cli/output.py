"""How a verb answers: text for people, in colour and columns, or one checked JSON document for programs.

Long work shows a bar meanwhile, on a terminal only.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import orjson

from resume_hooks.errors import OutputFailed
from resume_hooks.system.invocation import with_shell_commands
from resume_hooks.system.text import encodable_all, fit_columns, plain_line, plain_text, width

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from resume_hooks.transcripts.lines import Line
    from resume_hooks.transcripts.nodes import Node
    from resume_hooks.transcripts.records import Record
    from resume_hooks.transcripts.transcript import Observer

COMPLETING = "_RESUME_HOOKS_COMPLETE"  # what a shell sets that asks what may follow; click makes its name from ours
SCHEMA = 1
DUMB = "dumb"  # the terminal that obeys no sequence
_UNSEEN = re.compile(
    "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)  # JSON leaves it, terminals obey

_STYLE = re.compile("(\x1b\\[(?:[0-2]|3[0-7])m)")


class Complete(NamedTuple):
    """Data that is as the form of its verb has it: tests compare the two, so nobody waits for the form to be loaded."""

    data: dict[str, Any]


def emit(
    verb: str, data: object, text: Callable[[], str], *, as_json: bool, warnings: Sequence[str] = ()
) -> None:
    """Print a verb's answer; warnings go to the document, or to stderr."""
    if as_json:
        print_document(success_document(verb, data, warnings))
        return
    print_text(text())
    for warning in warnings:
        print_text(f"note: {with_shell_commands(warning)}", err=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text for people: of controls only line feeds, tabs and our own few styles reach the terminal."""
    pieces = enumerate(_STYLE.split(text))  # every second one is a style
    _put_text(
        "".join(piece if number % 2 else plain_text(piece) for number, piece in pieces), err=err
    )


def print_document(document: dict[str, Any]) -> None:
    """Print one JSON document. Lone surrogates of hostile input, which JSON can't hold, become question marks."""
    text = orjson.dumps(encodable_all(document), option=orjson.OPT_INDENT_2).decode()
    _put_text(_UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


@contextmanager
def on_stderr() -> Iterator[None]:
    """Send what is printed within to stderr, since a shell may catch and run what goes to stdout."""
    with redirect_stdout(sys.stderr):
        yield


def _put_text(text: str, *, err: bool = False) -> None:
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The answer could not be printed: {error.strerror}", "What it speaks of was done."
        ) from error


def success_document(verb: str, data: object, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The document of an answer, with data as the form of its verb has it."""
    if isinstance(data, Complete):
        formed = data.data
    else:
        # pydantic takes 60 ms to load, which only a program's call has to spend.
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
    """The document of a failure."""
    error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if candidates is not None:
        error["candidates"] = candidates
    return {"schema": SCHEMA, "verb": verb, "ok": False, "error": error}


def facts_table(pairs: Sequence[tuple[str, object]]) -> str:
    """Facts as two columns, each on one line whatever it says."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(
        f"{click.style(name.ljust(width), dim=True)}  {plain_line(str(value))}"
        for name, value in pairs
    )


def column_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, room: int = 0
) -> str:
    """Columns cut to ``room`` (0: any), ``words`` of them from the left, numbers from the right; "" without rows."""
    if not rows:
        return ""
    widths = []
    for place in range(len(heads)):
        widths.append(max(width(row[place]) for row in (heads, *rows)))
    lines = []
    for row in (heads, *rows):
        lines.append(
            "  ".join(
                pad_columns(cell, widths[place], right=place >= words)
                for place, cell in enumerate(row)
            ).rstrip()
        )
    first, *others = (fit_columns(line, room) if room else line for line in lines)
    return "\n".join([click.style(first, dim=True), *others])


def pad_columns(text: str, most: int, *, right: bool = False) -> str:
    """``text`` with spaces up to ``most`` columns."""
    blanks = " " * (most - width(text))
    if right:
        return blanks + text
    return text + blanks


def colour_wanted(environ: Mapping[str, str]) -> bool | None:
    """False for no colour, True for colour even in a pipe, None for colour on a terminal alone.

    ``NO_COLOR`` stands above all, then ``FORCE_COLOR`` and ``CLICOLOR_FORCE``, then a dumb terminal
    and ``CLICOLOR=0``.
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


LONG = 32 * 1024 * 1024  # bytes to be read from which on somebody waits
DRAWN = 4 * 1024 * 1024  # bytes of one file between two looks of its bar


@contextmanager
def work_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the bytes done and the total.

    It draws nothing if nobody would see it.
    """
    bar = _Bar(what)
    shown = not quiet and sys.stderr.isatty()
    try:
        yield bar.advance if shown else lambda _done, _total: None
    finally:
        bar.end()


@contextmanager
def scan_progress(path: str, *, quiet: bool) -> Iterator[list[Observer]]:
    """Yield observers that show how far the scan of a large file is, if somebody waits.

    They cost time.
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
            # rich takes 50 ms to load, which only long work has to spend.
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
