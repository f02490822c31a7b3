"""Classes that declare a verb's options and contain the parsed values.

A verb is a subclass of ``VerbOptions``: its docstring is the help text, and its attributes are the
options in the order of the help. The code that runs the verb is imported only when the verb is
called, so help and completion load only these declarations.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click

from resume_hooks import clock, part_table, questions
from resume_hooks.cli.output import DEFAULT_MAX_CHARACTERS, print_answer, print_text
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, canonical_path
from resume_hooks.seam import Function, PartQuestion, find_answers, insert_part_names, is_installed
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import (
    AGENT_NAMES,
    NAME_FOR_ALL_AGENTS,
    RESUMABLE_AGENT_NAMES,
    require_answers,
)
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from resume_hooks.sessions.session import Session
    from resume_hooks.sessions.session_files import SessionFile

GO_ON, FORK = "go on", "fork"
# the ways to continue a session, including the ways that installed parts add
WAYS_TO_CONTINUE = tuple(
    insert_part_names((GO_ON, "trim", "handoff", "rollover", FORK), part_table.WAYS_TO_CONTINUE)
)

_PartOptionRow = tuple[str, tuple[str, ...], str, str, bool]
"""An option that a part adds to a verb: the part, the option's names, its help text, the function
that handles it, and whether it is a flag."""


class DeclaredParameter(NamedTuple):
    """An option or argument of a verb, declared as an attribute of a ``VerbOptions`` class.

    ``arguments`` are passed to ``parameter_class``.
    """

    parameter_class: Callable[..., click.Parameter]
    option_names: tuple[str, ...]
    arguments: dict[str, Any]

    def make_parameter(self, name: str) -> click.Parameter:
        """Return click's parameter for the attribute that is called ``name``.

        An option that declares no long name gets one from the attribute: ``dry_run`` becomes
        ``--dry-run``.
        """
        has_name = self.parameter_class is click.Argument or any(
            word.startswith("--") for word in self.option_names
        )
        long_form = () if has_name else (f"--{name.replace('_', '-')}",)
        return self.parameter_class((name, *self.option_names, *long_form), **self.arguments)


def option(*option_names: str, **arguments: Any) -> Any:
    """Declare an option. ``arguments`` are passed to ``click.Option``.

    ``option_names`` are needed only for a short name, or if the long name differs from the
    attribute's name.
    """
    return DeclaredParameter(click.Option, option_names, arguments)


def flag(*option_names: str, help: str) -> Any:  # noqa: A002 - as click has it
    """Declare an option that takes no value."""
    return DeclaredParameter(click.Option, option_names, {"is_flag": True, "help": help})


def argument(**arguments: Any) -> Any:
    """Declare a positional argument. ``arguments`` are passed to ``click.Argument``."""
    return DeclaredParameter(click.Argument, (), arguments)


def complete_session(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return completions for the SESSION argument of a verb."""
    # Imported late because only completion needs it.
    from resume_hooks.cli.complete_sessions import complete_locators

    return complete_locators(incomplete)


TARGET_AGENT_OPTION = option(
    "--to", type=click.Choice(RESUMABLE_AGENT_NAMES), help="The agent to continue in."
)
DRY_RUN_OPTION = flag(help="Show the result, but write nothing.")
YES_OPTION = flag(help="Do not ask.")
AGENT_OPTION = option(
    type=click.Choice([*AGENT_NAMES, NAME_FOR_ALL_AGENTS]),
    default=NAME_FOR_ALL_AGENTS,
    show_default=True,
    help="Include only this agent's sessions.",
)
MAX_CHARS_OPTION = option(
    type=click.IntRange(0), default=DEFAULT_MAX_CHARACTERS, show_default=True,
    help="Maximum number of characters of the text; 0 for no limit.",
)  # fmt: skip
# A placeholder for the options of installed parts. A verb's class assigns it to an attribute, and
# the verb's help lists these options at the position of that attribute.
PART_OPTIONS = DeclaredParameter(click.Option, (), {})


class VerbOptions:
    """Base class of a verb's options. An instance contains the parsed values as attributes.

    A subclass passes ``function``, the function that runs the verb, as ``"module:function"``. A
    verb that has subcommands passes their classes as ``subcommands`` instead. Other keyword
    arguments are passed to ``click.Command``. ``where`` contains the paths and the environment of
    this run.
    """

    verb: ClassVar[str]
    _function_path: ClassVar[str]
    _subcommands: ClassVar[tuple[type[VerbOptions], ...]]
    _command_settings: ClassVar[dict[str, Any]]
    where: Where
    locator: str | None = None
    dry_run: bool = False
    yes: bool = False
    start: bool = False
    output_dir: str | None = None
    as_json: bool = flag("--json", help="Print one JSON document (docs/schema).")

    def __init_subclass__(
        cls,
        function: str = "",
        subcommands: tuple[type[VerbOptions], ...] = (),
        **settings: Any,
    ) -> None:
        cls.verb = re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Options")).lower()
        cls._function_path, cls._subcommands, cls._command_settings = (
            function,
            subcommands,
            settings,
        )

    def __init__(self, **values: Any) -> None:
        self.where = Where()
        vars(self).update(values)

    @classmethod
    def make_command(cls) -> click.Command:
        """Return the click command of the verb, with its options and help."""
        if cls._subcommands:
            return click.Group(
                cls.verb,
                commands=[act.make_command() for act in cls._subcommands],
                help=cls.__doc__,
                invoke_without_command=True,
                callback=_print_help_of_group,
            )
        parameters = list(cls._list_click_parameters())
        return click.Command(
            cls.verb,
            callback=cls._run_function,
            params=parameters,
            help=cls.__doc__,
            **cls._command_settings,
        )

    @classmethod
    def _run_function(cls, **values: Any) -> object:
        module, _, function = cls._function_path.partition(":")
        return getattr(importlib.import_module(module), function)(cls(**values))

    @classmethod
    def _list_click_parameters(cls) -> Iterator[click.Parameter]:
        """Yield click's parameters: first the verb's own parameters, then those that its base classes declare."""
        for name in dict.fromkeys(name for owner in cls.__mro__ for name in vars(owner)):
            value = getattr(cls, name)
            if value is PART_OPTIONS:
                for _, names, about, _, is_flag in _list_part_options(cls.verb):
                    yield click.Option(names, is_flag=is_flag or None, help=about)
            elif isinstance(value, DeclaredParameter):
                yield value.make_parameter(name)

    def locate_session(self, *, allow_other_agents: bool = False) -> Session:
        """Return the session that the verb's SESSION argument names.

        If ``allow_other_agents``, the session may be another agent's, such as Codex's.
        """
        return locate_session(self.locator, self.where, allow_other_agents=allow_other_agents)

    def locate_parent(self) -> Session:
        """Return the session or sub-agent that the SESSION argument names, for a verb that creates a child."""
        return locate_parent(self.locator, self.where)

    def locate_session_with_answers(self) -> Session:
        """Return the session that the SESSION argument names, whichever agent it belongs to.

        Raise UsageError if the session's file is lost and only its prompts are known.
        """
        session = self.locate_session(allow_other_agents=True)
        require_answers(session)
        return session

    def print_answer(
        self, data: object, text: Callable[[], str], warnings: Sequence[str] = ()
    ) -> None:
        """Print the verb's answer as text, or as JSON if ``--json`` was given."""
        print_answer(self.verb, data, text, as_json=self.as_json, warnings=warnings)

    def refuse_combination(
        self, *names: str, remedy: str = "Give only one of these options."
    ) -> None:
        """Raise UsageError if more than one of the named options was given.

        ``names`` are the names of the options' attributes.
        """
        given_names = [name for name in names if self.is_option_given(name)]
        if len(given_names) > 1:
            raise UsageError(
                f"{' and '.join(map(find_option_name, given_names))} can't be combined",
                remedy,
            )

    def is_option_given(self, name: str) -> bool:
        """Check whether an option was given. ``name`` is the name of its attribute."""
        value = getattr(self, name)
        return value is not None and value is not False and value != ()

    def find_given_option(self, *names: str) -> str:
        """Return the first of the named options that was given, such as ``--list``, or ``""``.

        ``names`` are the names of the options' attributes.
        """
        for name in names:
            if self.is_option_given(name):
                return find_option_name(name)
        return ""

    def find_part_functions(self, question: PartQuestion[Function]) -> list[Function]:
        """Return the functions of installed parts that handle the options given on the command line.

        ``question`` loads the functions. Options that were not given are ignored.
        """
        functions = []
        for part, names, _, function, _ in _list_part_options(self.verb):
            if self.is_option_given(_find_parameter_name(names)):
                functions.append(question.load_function(part, function))
        return functions

    @property
    def is_interactive(self) -> bool:
        """Whether the user can be asked: stdin and stdout are terminals, and ``--json`` was not given."""
        return sys.stdin.isatty() and sys.stdout.isatty() and not self.as_json

    def must_ask(self, action: str) -> bool:
        """Check whether the verb must ask the user before it writes.

        Raise UsageError if it must ask but there is no terminal. ``action`` is the first word of
        the error's message, for example "Forgetting".
        """
        ask_first = not (self.yes or self.dry_run)
        if ask_first and not self.is_interactive:
            remedy = "Add --yes, or --dry-run to see what would change."
            raise UsageError(f"{action} needs a confirmation, but there is no terminal", remedy)
        return ask_first

    def confirm_write(self, question: str, *, ask_first: bool) -> bool:
        """Return whether the verb should write. If ``ask_first``, ask the user first.

        In a dry run, return False without asking.
        """
        return not self.dry_run and (not ask_first or click.confirm(f"\n{question}", err=True))


class OneSessionOptions(VerbOptions):
    """Options of a verb that takes a session. The default is the latest session of the current folder."""

    locator: str | None = argument(
        metavar="[SESSION]", required=False, shell_complete=complete_session
    )


class ChildOptions(OneSessionOptions):
    """Options of a verb that creates a child of a session."""

    output_dir: str | None = option(
        type=click.Path(exists=True, file_okay=False),
        help="Write the child to this folder instead of its project's folder.",
    )
    start: bool = flag(help="Start the client on the child.")
    dry_run: bool = DRY_RUN_OPTION


@click.pass_context
def _print_help_of_group(context: click.Context) -> None:
    """If a verb with subcommands was called without one, print its help."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def _list_part_options(verb: str) -> list[_PartOptionRow]:
    """Return the rows of ``part_table.OPTIONS`` with the options that installed parts add to a verb."""
    rows = []
    for row in part_table.OPTIONS.get(verb, ()):
        if is_installed(row[0]):
            rows.append(row)
    return rows


def _find_parameter_name(option_names: Sequence[str]) -> str:
    own_name = next((name for name in option_names if not name.startswith("-")), "")
    return own_name or next(name for name in option_names if name.startswith("--"))[2:].replace(
        "-", "_"
    )


def find_option_name(attribute_name: str) -> str:
    """Return the longest name that the running command has for an option, such as ``--list``.

    ``attribute_name`` is the name of the option's attribute.
    """
    options = {}
    for parameter in click.get_current_context().command.params:
        options[parameter.name] = parameter.opts
    return max(options[attribute_name], key=len)


def locate_session(
    locator: str | None, where: Where, *, allow_other_agents: bool = False
) -> Session:
    """Return the session that a locator names. If ``allow_other_agents``, the session may be another agent's.

    Raise UsageError for a sub-agent. Without a locator, return the latest session of the current
    folder.
    """
    folder = current_folder()
    if locator and locate.is_subagent_locator(locator):
        session_file = locate.resolve_transcript(
            locator, folder, where, allow_other_agents=allow_other_agents
        )
        if subagent_name(session_file.path):
            raise UsageError(
                f"{plain_line(session_file.session_id)} is a sub-agent, which this verb does not accept",
                (
                    "Copy it into a session of its own first: resume-hooks fork "
                    f"{shlex.quote(plain_line(session_file.session_id))}"
                ),
            )
        return _load_session(session_file, where)
    session = _load_session(
        locate.resolve_locator(locator, folder, where, allow_other_agents=allow_other_agents), where
    )
    if locator is None:
        _print_chosen_session(session, _find_unused_newest_child(session, folder, where))
    return session


def _load_session(session: SessionFile, where: Where) -> Session:
    # Imported late because help and completion do not need it.
    from resume_hooks.sessions.session import Session

    return Session.from_file(session, where)


_TRIM_KINDS = ("trim", "smart-trim")


def locate_trim(locator: str | None, where: Where) -> Session:
    """Return the session that ``untrim`` reads: the session that the locator names.

    Without a locator, return the newest trim of the default session if it has no new prompt yet,
    else the default session.
    """
    if locator is not None:
        return locate_session(locator, where, allow_other_agents=True)
    default_session = _load_session(
        locate.resolve_locator(None, current_folder(), where, allow_other_agents=True), where
    )
    child = _find_unused_newest_child(default_session, current_folder(), where)
    if child is not None and child.kind in _TRIM_KINDS:
        print_text(
            f"Using the trimmed copy of {default_session.session_id}, because it has no new prompt yet.",
            err=True,
        )
        return _load_session(child.session, where)
    _print_chosen_session(default_session, child)
    return default_session


class UnusedChild(NamedTuple):
    """A child that has no new prompt since it was created, and its kind, such as "trim"."""

    session: SessionFile
    kind: str


def _find_unused_newest_child(
    default_session: SessionFile, folder: str, where: Where
) -> UnusedChild | None:
    """Return the newest session of a folder if it is an unused child of ``default_session``, else None."""
    newest_session = next(iter(locate.sessions_of_directory(folder, where)), default_session)
    if (
        newest_session.session_id == default_session.session_id
        or default_session.session_id == where.environ.get("CLAUDE_CODE_SESSION_ID")
    ):
        return None
    parent = read_parent(newest_session.path)
    if (
        parent is None
        or parent.session_id != default_session.session_id
        or HeadTail(newest_session.path).was_continued
    ):
        return None
    return UnusedChild(newest_session, parent.kind)


def _print_chosen_session(session: Session, child: UnusedChild | None) -> None:
    """If the session has an unused child, print that the verb uses the session and not the child."""
    if child is not None:
        title = plain_line(session.head_tail.title)
        reason = f"not its child {child.session.session_id}, which has no new prompt yet"
        print_text(f"Using {title} · {session.session_id}, {reason}.", err=True)


def locate_parent(locator: str | None, where: Where) -> Session:
    """Return the session or sub-agent that a locator names, whichever agent it belongs to.

    A sub-agent is returned as a temporary session that exists until the verb ends.
    """
    if locator:
        for open_as_session in find_answers(questions.open_subagent_as_session):
            context = open_as_session(locator, current_folder(), where)
            subagent = click.get_current_context().with_resource(context)
            if subagent is not None:
                return _load_session(subagent, where)
    return locate_session(locator, where, allow_other_agents=True)


def current_folder() -> str:
    """Return the current folder. Raise UsageError if it no longer exists."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Change to a folder that exists.") from error


def parse_time_option(text: str) -> datetime:
    """Return the time in an option's text. Raise UsageError if the text is not a date or time."""
    time = clock.parse_user_time(text)
    if time is None:
        raise UsageError(f"'{text}' is not a date or a time", clock.TIME_EXAMPLES)
    return time


def refuse_unknown_options(words: tuple[str, ...]) -> None:
    """Raise UsageError if a word to search for looks like an option, such as ``--projct``."""
    for word in words:
        if re.match(r"--[^\s-]\S*\Z", word):
            import difflib  # Imported late because only an unknown option needs it.

            option = word.partition("=")[0]
            option_names = (
                name
                for parameter in click.get_current_context().command.params
                for name in parameter.opts
            )
            suggestions = "".join(
                f"Did you mean {name}? "
                for name in difflib.get_close_matches(option, option_names, 1)
            )
            search_hint = f"To search for this text: resume-hooks search '\"{option}\"'"
            raise UsageError(
                f"No such option: {option}",
                f"{suggestions}Options: resume-hooks search --help. {search_hint}",
            )


def find_project_folder(folder: str | None) -> str:
    """Return the absolute path of the folder in ``--project``, by default of the current folder."""
    return canonical_path(os.path.join(current_folder(), os.path.expanduser(folder or ".")))


def list_part_notes(session_id: str, where: Where) -> list[str]:
    """Return the notes of all installed parts about a session."""
    notes = []
    for note_on in find_answers(questions.note_on_session):
        notes.append(note_on(session_id, where))
    return [note for note in notes if note]
