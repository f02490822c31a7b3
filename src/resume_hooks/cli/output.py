"""Print a verb's output: text in colour and columns for people, or a validated JSON document.

On a terminal, long work shows a progress bar.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.errors import OutputFailed
from resume_hooks.system.invocation import format_remedy
from resume_hooks.system.text import (
    fit_to_columns,
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
    from resume_hooks.transcripts.transcript import RecordObserver

# the environment variable through which a shell requests completions; click derives this name from
# the name of the program
COMPLETION_VARIABLE = "_RESUME_HOOKS_COMPLETE"
# the default maximum number of characters of a text answer, about 2,000 tokens for a model
DEFAULT_MAX_CHARACTERS = 8_000
SCHEMA_VERSION = 1
DUMB_TERMINAL_TYPE = "dumb"  # the value of TERM for a terminal without escape sequences
# JSON does not escape these characters, but terminals execute or hide them.
_UNESCAPED_CONTROL_PATTERN = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_STYLE_SEQUENCE_PATTERN = re.compile("(\x1b\\[(?:[0-2]|3[0-7])m)")


class SchemaData(NamedTuple):
    """Data that already has the form of its verb's JSON schema.

    ``print_answer`` prints it without loading the schema. Tests check the data against the schema.
    """

    data: dict[str, Any]


def print_answer(
    verb: str, data: object, text: Callable[[], str], *, as_json: bool, warnings: Sequence[str] = ()
) -> None:
    """Print a verb's answer as a JSON document with the warnings, or as text with the warnings on stderr."""
    if as_json:
        document = make_success_document(verb, data, warnings)
        if isinstance(data, SchemaData):
            _print_json(json.dumps(replace_all_surrogates(document), ensure_ascii=False, indent=2))
        else:
            print_document(document)
        return
    print_text(text())
    for warning in warnings:
        print_text(f"note: {format_remedy(warning)}", err=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text without its control characters, except for line feeds, tabs and our own colours."""
    # ``re.split`` with a group returns the style sequences as every second segment.
    segments = enumerate(_STYLE_SEQUENCE_PATTERN.split(text))
    _print_or_fail(
        "".join(segment if number % 2 else plain_text(segment) for number, segment in segments),
        err=err,
    )


def print_document(document: dict[str, Any]) -> None:
    """Print a JSON document. Lone surrogates, which JSON can't encode, are printed as question marks."""
    import orjson  # Imported late: the import takes 10 ms, and answers with ``SchemaData`` do not need it.

    _print_json(orjson.dumps(replace_all_surrogates(document), option=orjson.OPT_INDENT_2).decode())


def _print_json(text: str) -> None:
    """Print a JSON text, and escape the control characters on which a terminal would act."""
    _print_or_fail(
        _UNESCAPED_CONTROL_PATTERN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    )


def replace_unencodable_characters() -> None:
    """Make stdout and stderr replace each character that they can't encode with "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Send the with block's output to stderr, because a shell may capture stdout and run it as a command."""
    with redirect_stdout(sys.stderr):
        yield


def _print_or_fail(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    try:
        if stream is None or find_colour_preference(os.environ) or stream.isatty():
            # Imported late: the import takes 10 ms, and output into a pipe or file does not need
            # it.
            from click import echo

            echo(text, err=err)
        else:
            stream.write(f"{_STYLE_SEQUENCE_PATTERN.sub('', text)}\n")
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The answer could not be printed: {error.strerror}", "The work itself was done."
        ) from error


def make_success_document(verb: str, data: object, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON document of a successful verb. Convert ``data`` to the form of the verb's schema."""
    if isinstance(data, SchemaData):
        form_data = data.data
    else:
        # Imported late: pydantic takes 60 ms to load, and only JSON output needs it.
        from resume_hooks.cli.schema import validate_data

        form_data = validate_data(verb, data)
    return {
        "schema": SCHEMA_VERSION,
        "verb": verb,
        "ok": True,
        "data": form_data,
        "warnings": list(warnings),
    }


def make_failure_document(
    verb: str,
    code: str,
    message: str,
    remedy: str,
    candidates: list[dict[str, object]] | None = None,
) -> dict[str, Any]:
    """Return the JSON document of a failed verb.

    ``candidates`` are the sessions that match an ambiguous locator.
    """
    error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if candidates is not None:
        error["candidates"] = candidates
    return {"schema": SCHEMA_VERSION, "verb": verb, "ok": False, "error": error}


def facts_table(pairs: Sequence[tuple[str, object]]) -> str:
    """Return (name, value) pairs as a table, with one pair on each line."""
    from click import style  # Imported late, as in _print_or_fail.

    width = max(len(name) for name, _ in pairs)
    return "\n".join(
        f"{style(name.ljust(width), dim=True)}  {plain_line(str(value))}" for name, value in pairs
    )


def column_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left_aligned_count: int = 1,
    max_columns: int = 0,
) -> str:
    """Return a table as text. Lines longer than ``max_columns`` columns are cut (0: no limit).

    The first ``left_aligned_count`` columns are aligned left, the following columns right.
    """
    from click import style  # Imported late, as in _print_or_fail.

    if not rows:
        return ""
    column_widths = []
    for column in range(len(headings)):
        column_widths.append(max(text_width(row[column]) for row in (headings, *rows)))
    lines = []
    for row in (headings, *rows):
        lines.append(
            "  ".join(
                pad_columns(cell, column_widths[column], align_right=column >= left_aligned_count)
                for column, cell in enumerate(row)
            ).rstrip()
        )
    heading_line, *row_lines = (
        fit_to_columns(line, max_columns) if max_columns else line for line in lines
    )
    return "\n".join([style(heading_line, dim=True), *row_lines])


def pad_columns(text: str, columns: int, *, align_right: bool = False) -> str:
    """Return ``text`` padded with spaces to a width of ``columns`` terminal columns."""
    padding = " " * (columns - text_width(text))
    if align_right:
        return padding + text
    return text + padding


def find_colour_preference(environ: Mapping[str, str]) -> bool | None:
    """Return whether to print colours: True, False, or None to print them only on a terminal.

    ``NO_COLOR`` has precedence over ``FORCE_COLOR`` and ``CLICOLOR_FORCE``. These two have
    precedence over ``TERM=dumb`` and ``CLICOLOR=0``.
    """
    if environ.get("NO_COLOR"):
        return False
    if any(
        environ.get(name, "0").lower() not in {"", "0", "false"}
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE")
    ):
        return True
    is_colour_off = (
        environ.get("TERM") == DUMB_TERMINAL_TYPE
        or environ.get("CLICOLOR") == "0"
        or environ.get("FORCE_COLOR") == "0"
    )
    if is_colour_off:
        return False
    return None


# the minimum size in bytes of a file for which a progress bar is shown during reading
MIN_BYTES_FOR_PROGRESS_BAR = 32 * 1024 * 1024
PROGRESS_STEP_BYTES = 4 * 1024 * 1024  # the number of bytes between two updates of the progress bar


@contextmanager
def show_work_progress(description: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr during the with block. Show nothing if stderr is not a terminal.

    Yield a function that updates the bar. It takes the number of finished bytes and the total
    number of bytes.
    """
    bar = _ProgressBar(description)
    is_shown = not quiet and sys.stderr.isatty()
    try:
        yield bar.advance if is_shown else lambda _done, _total: None
    finally:
        bar.stop_display()


@contextmanager
def show_scan_progress(path: str, *, quiet: bool) -> Iterator[list[RecordObserver]]:
    """Yield the observers that a scan of the file needs to show its progress.

    The list is empty for a small file, or if no user sees the progress, because observers slow the
    scan down.
    """
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    if quiet or size < MIN_BYTES_FOR_PROGRESS_BAR or not sys.stderr.isatty():
        yield []
        return
    with show_work_progress("Reading", quiet=quiet) as advance:
        next_update = 0

        def show_progress(line: Line, _record: Record, _node: Node | None) -> None:
            nonlocal next_update
            if line.offset >= next_update:
                next_update = line.offset + PROGRESS_STEP_BYTES
                advance(line.offset, size)

        yield [show_progress]


class _ProgressBar:
    def __init__(self, description: str) -> None:
        self._description = description
        self._progress: tuple[Progress, TaskID] | None = None

    def advance(self, finished_bytes: int, total_bytes: int) -> None:
        if self._progress is None:
            if total_bytes < MIN_BYTES_FOR_PROGRESS_BAR:
                return
            # Imported late: rich takes 50 ms to load, and only long work needs it.
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
            self._progress = progress, progress.add_task(self._description, total=total_bytes)
        progress, task = self._progress
        progress.update(task, completed=finished_bytes)

    def stop_display(self) -> None:
        if self._progress is not None:
            self._progress[0].stop()
