"""The options that verbs share, and everything that was asked of a verb as one value."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from resume_hooks import clock, part_table
from resume_hooks.cli.output import emit
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, canonical
from resume_hooks.seam import function_of, is_there, with_parts
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import ALL, NAMES, RUNNING, require_whole

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from resume_hooks.sessions.session_files import SessionFile


def complete_locator(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offer sessions where one is to be named."""
    from resume_hooks.cli.complete_sessions import locators  # only a shell that completes waits for it

    return locators(incomplete)


locator_argument = click.argument("locator", metavar="[SESSION]", required=False, shell_complete=complete_locator)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document (docs/schema).")
to_option = click.option("--to", type=click.Choice(RUNNING), help="The agent that is to go on with it.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
agent_option = click.option(
    "--agent", type=click.Choice([*NAMES, ALL]), default=ALL, show_default=True, help="Whose sessions."
)
AS_IS, FORK = "as-is", "fork"
WAYS = tuple(with_parts((AS_IS, "trim", "handoff", "rollover", FORK), part_table.WAYS))  # to continue a session
MAX_CHARACTERS = 8_000  # of an answer as text: about 2,000 tokens of a model that reads it
max_chars_option = click.option(
    "--max-chars", type=click.IntRange(0), default=MAX_CHARACTERS, show_default=True,
    help="Characters of the text at most; 0 for all.",
)  # fmt: skip


def _brought(verb: str) -> list[tuple[str, tuple[str, ...], str, str, bool]]:
    """The rows of the table for the options that parts which are here have on a verb of the core."""
    return [row for row in part_table.OPTIONS.get(verb, ()) if is_there(row[0])]


def part_options(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that parts which are here have on a verb of the core, in one decorator at their place in its help."""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        for _, names, about, _, is_flag in reversed(_brought(verb)):
            function = click.option(*names, is_flag=is_flag, help=about)(function)
        return function

    return decorated


_CHILD_OPTIONS = (
    click.option("--output-dir", type=click.Path(exists=True, file_okay=False), help="Write the child there instead."),
    click.option("--start", is_flag=True, help="Start the client on the child."),
    dry_run_option,
    json_option,
)


def child_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that all verbs have that make a child, in the order of its help."""
    for option in reversed(_CHILD_OPTIONS):
        verb = option(verb)
    return verb


class VerbOptions(SimpleNamespace):
    """What was asked of a verb: every option and argument by its name, with the value that click read.

    Those that several verbs share are named here. ``where`` says where this run finds things.
    """

    verb: str
    where: Where
    locator: str | None = None
    as_json: bool = False
    dry_run: bool = False
    yes: bool = False
    start: bool = False
    output_dir: str | None = None
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def located(self, *, foreign: bool = False) -> SessionFile:
        """The session that the locator names, seen from the current folder; another agent's if ``foreign``."""
        return located(self.locator, self.where, foreign=foreign)

    def located_whole(self) -> SessionFile:
        """The session that the locator names, whoever wrote it. UsageError where its prompts alone are left."""
        session = self.located(foreign=True)
        require_whole(session)
        return session

    def emit(self, data: object, text: Callable[[], str], warnings: Sequence[str] = ()) -> None:
        """Print the verb's answer."""
        emit(self.verb, data, text, as_json=self.as_json, warnings=warnings)

    def refuse_together(self, *names: str, remedy: str = "Leave one of them out.") -> None:
        """UsageError if more than one of these options was given."""
        given = [name for name in names if self.has(name)]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(map(_flag, given))} exclude each other", remedy)

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        value = getattr(self, name)
        return value is not None and value is not False and value != ()

    def asked_of_parts(self) -> list[Callable[..., Any]]:
        """The functions of parts whose option on this verb was given."""
        rows = _brought(self.verb)
        return [function_of(part, function) for part, names, _, function, _ in rows if self.has(_parameter(names))]

    @property
    def watched(self) -> bool:
        """Whether somebody at a terminal sees the answer and can be asked."""
        return sys.stdin.isatty() and sys.stdout.isatty() and not self.as_json

    def asks(self, what: str) -> bool:
        """Whether to ask before writing. UsageError if nobody can be asked; ``what`` begins the sentence."""
        asks = not (self.yes or self.dry_run)
        if asks and not self.watched:
            remedy = "Add --yes, or --dry-run to see what would change."
            raise UsageError(f"{what} asks first, and here nobody can be asked", remedy)
        return asks

    def agreed(self, question: str, *, asks: bool) -> bool:
        """Whether to write: not in a dry run, nor where ``asks`` and the user says no."""
        return not self.dry_run and (not asks or click.confirm(f"\n{question}", err=True))


def as_one_value(verb: Callable[[VerbOptions], object]) -> Callable[..., object]:
    """Hand a verb its options as one value."""

    @functools.wraps(verb)
    def called(**given: Any) -> object:
        name = click.get_current_context().command.name
        return verb(VerbOptions(verb=name, where=Where(), **given))

    return called


def _parameter(names: Sequence[str]) -> str:
    """What click calls an option: the name without dashes where one is given, else the first long one."""
    own = next((name for name in names if not name.startswith("-")), "")
    return own or next(name for name in names if name.startswith("--"))[2:].replace("-", "_")


def _flag(name: str) -> str:
    """An option as it is typed."""
    options = {parameter.name: parameter.opts for parameter in click.get_current_context().command.params}
    return max(options[name], key=len)


def located(locator: str | None, where: Where, *, foreign: bool = False) -> SessionFile:
    """The session that a locator names, seen from the current folder; another agent's if ``foreign``."""
    return locate.resolve(locator, current_folder(), where, foreign=foreign)


def current_folder() -> str:
    """The current folder. UsageError if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Change to a folder that exists.") from error


def time_of(given: str) -> datetime:
    """The time that an option names. UsageError if it names none."""
    moment = clock.point(given)
    if moment is None:
        raise UsageError(f"'{given}' is not a date or a time", clock.WHEN)
    return moment


def refuse_unknown(words: tuple[str, ...]) -> None:
    """UsageError for what looks like an option that there is not."""
    for word in words:
        if re.match(r"--[^\s-]\S*\Z", word):
            option = word.partition("=")[0]
            raise UsageError(f"No such option: {option}", f"Options: search --help. To find it: search '\"{option}\"'")


def folder_of(given: str | None) -> str:
    """The folder of ``--project``, by default the current one."""
    return canonical(os.path.join(current_folder(), os.path.expanduser(given or ".")))
