"""How a verb answers: text for people, one checked JSON document for programs; and the options all verbs share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import click
import orjson

from resume_hooks.errors import OutputFailed, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.system.text import encodable_all, plain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETING = "_RESUME_HOOKS_COMPLETE"
"""What a shell sets that asks what may follow; click makes its name from ours."""

SCHEMA = 1
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What JSON leaves as it is but some terminals obey."""

_STYLE = re.compile("(\x1b\\[(?:[0-2]|3[0-7])m)")


def complete_locator(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """What a shell offers where a session is named."""
    from resume_hooks.cli.completing import locators  # noqa: PLC0415 - only a shell that completes waits for it

    return locators(incomplete)


locator_argument = click.argument("locator", required=False, shell_complete=complete_locator)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document (docs/schema).")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")


def emit(
    verb: str, data: dict[str, Any], text: Callable[[], str], *, as_json: bool, warnings: Sequence[str] = ()
) -> None:
    """Print a verb's answer; warnings go to the document, or to stderr."""
    if as_json:
        print_document(success(verb, data, warnings))
        return
    say(text())
    for warning in warnings:
        say(f"note: {warning}", err=True)


def say(text: str, *, err: bool = False) -> None:
    """Print text for people: of controls only line feeds, tabs and our own few styles reach the terminal."""
    pieces = enumerate(_STYLE.split(text))  # every second one is a style
    _put("".join(piece if number % 2 else plain(piece) for number, piece in pieces), err=err)


def print_document(document: dict[str, Any]) -> None:
    """Print one JSON document. Lone surrogates of hostile input, which JSON can't hold, become question marks."""
    text = orjson.dumps(encodable_all(document), option=orjson.OPT_INDENT_2).decode()
    _put(_UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


@contextmanager
def on_stderr() -> Iterator[None]:
    """What is printed within goes to stderr: remarks on the way to a command that a shell may catch and run."""
    with redirect_stdout(sys.stderr):
        yield


def _put(text: str, *, err: bool = False) -> None:
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The answer could not be printed: {error.strerror}", "What it speaks of was done."
        ) from error


def success(verb: str, data: dict[str, Any], warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The document of an answer, checked against the schema of its verb."""
    # pydantic takes 60 ms to load, which only a program's call has to spend.
    from resume_hooks.cli.schema import checked  # noqa: PLC0415

    return {
        "schema": SCHEMA,
        "verb": verb,
        "ok": True,
        "data": checked(verb, data),
        "warnings": list(warnings),
    }


def failure(
    verb: str, code: str, message: str, remedy: str, candidates: list[dict[str, object]] | None = None
) -> dict[str, Any]:
    """The document of a failure."""
    error: dict[str, Any] = {"code": code, "message": message, "remedy": remedy}
    if candidates is not None:
        error["candidates"] = candidates
    return {"schema": SCHEMA, "verb": verb, "ok": False, "error": error}


def located(locator: str | None) -> locate.SessionFile:
    """The session that a locator names, seen from the current folder."""
    return locate.resolve(locator, current_folder(), Where())


def current_folder() -> str:
    """The current folder; UsageError where it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Change to a folder that exists.") from error


def table(pairs: Sequence[tuple[str, object]]) -> str:
    """Facts as two columns."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{click.style(name.ljust(width), dim=True)}  {value}" for name, value in pairs)
