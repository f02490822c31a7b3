"""How a verb declares what it takes, the options that verbs share, and everything that was asked of one as a value.

A verb is a subclass of ``VerbOptions``: its docstring is the help, its attributes are the options
in their order there. What the verb does is imported when it is called, so that help and completion
wait for declarations alone.
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
from resume_hooks.cli.output import emit, print_text
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, canonical
from resume_hooks.seam import Function, Question, answers, is_there, with_parts
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import ALL, NAMES, RUNNING, require_whole
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import plain_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from resume_hooks.sessions.session import Session
    from resume_hooks.sessions.session_files import SessionFile

GO_ON, FORK = "go on", "fork"
WAYS = tuple(
    with_parts((GO_ON, "trim", "handoff", "rollover", FORK), part_table.WAYS)
)  # to continue a session
MAX_CHARACTERS = 8_000  # of an answer as text: about 2,000 tokens of a model that reads it


class Declared(NamedTuple):
    """A parameter of a verb, which has the name of the attribute that declares it."""

    kind: Callable[..., click.Parameter]
    words: tuple[str, ...]
    attributes: dict[str, Any]

    def parameter(self, name: str) -> click.Parameter:
        """The parameter as click has it; an option without a long form is typed by its name."""
        named = self.kind is click.Argument or any(word.startswith("--") for word in self.words)
        long = () if named else (f"--{name.replace('_', '-')}",)
        return self.kind((name, *self.words, *long), **self.attributes)


def option(*words: str, **attributes: Any) -> Any:
    """Declare an option: how it is typed where its name does not say that, and what ``click.Option`` takes."""
    return Declared(click.Option, words, attributes)


def flag(*words: str, help: str) -> Any:  # noqa: A002 - as click has it
    """Declare an option without a value."""
    return Declared(click.Option, words, {"is_flag": True, "help": help})


def argument(**attributes: Any) -> Any:
    """Declare an argument, with what ``click.Argument`` takes."""
    return Declared(click.Argument, (), attributes)


def complete_locator(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Offer sessions where one is to be named."""
    from resume_hooks.cli.complete_sessions import (
        complete_locators,
    )  # only a shell that completes waits for it

    return complete_locators(incomplete)


TO = option(type=click.Choice(RUNNING), help="The agent to continue in.")
DRY_RUN = flag(help="Show what would be written, write nothing.")
YES = flag(help="Do not ask.")
AGENT = option(
    type=click.Choice([*NAMES, ALL]), default=ALL, show_default=True, help="Whose sessions."
)
MAX_CHARS = option(
    type=click.IntRange(0), default=MAX_CHARACTERS, show_default=True,
    help="Characters of the text at most; 0 for all.",
)  # fmt: skip
OF_PARTS = Declared(
    click.Option, (), {}
)  # the place of the options that parts which are here have on the verb


class VerbOptions:
    """What was asked of a verb: every option and argument by its name, with the value that click read.

    ``body`` is the function that is called with it, as ``module:function``; ``acts`` are the
    commands below a verb that does nothing itself. What else a class is given goes to
    ``click.Command``. ``where`` says where this run finds things.
    """

    verb: ClassVar[str]
    _body: ClassVar[str]
    _acts: ClassVar[tuple[type[VerbOptions], ...]]
    _settings: ClassVar[dict[str, Any]]
    where: Where
    locator: str | None = None
    dry_run: bool = False
    yes: bool = False
    start: bool = False
    output_dir: str | None = None
    as_json: bool = flag("--json", help="Print one JSON document (docs/schema).")

    def __init_subclass__(
        cls, body: str = "", acts: tuple[type[VerbOptions], ...] = (), **settings: Any
    ) -> None:
        cls.verb = re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Options")).lower()
        cls._body, cls._acts, cls._settings = body, acts, settings

    def __init__(self, **given: Any) -> None:
        self.where = Where()
        vars(self).update(given)

    @classmethod
    def command(cls) -> click.Command:
        """The command that is declared."""
        if cls._acts:
            return click.Group(
                cls.verb, commands=[act.command() for act in cls._acts], help=cls.__doc__
            )
        parameters = list(cls._parameters())
        return click.Command(
            cls.verb,
            callback=cls._run_verb_body,
            params=parameters,
            help=cls.__doc__,
            **cls._settings,
        )

    @classmethod
    def _run_verb_body(cls, **given: Any) -> object:
        module, _, function = cls._body.partition(":")
        return getattr(importlib.import_module(module), function)(cls(**given))

    @classmethod
    def _parameters(cls) -> Iterator[click.Parameter]:
        """The verb's own, then those that it shares, each class's in its order."""
        for name in dict.fromkeys(name for owner in cls.__mro__ for name in vars(owner)):
            value = getattr(cls, name)
            if value is OF_PARTS:
                for _, names, about, _, is_flag in _options_of_parts(cls.verb):
                    yield click.Option(names, is_flag=is_flag or None, help=about)
            elif isinstance(value, Declared):
                yield value.parameter(name)

    def locate_session(self, *, foreign: bool = False) -> Session:
        """The session that the locator names, seen from the current folder.

        Another agent's if ``foreign``.
        """
        return locate_session(self.locator, self.where, foreign=foreign)

    def locate_parent(self) -> Session:
        """The session, or the sub-agent, that the locator names for a child to be made of it."""
        return locate_parent(self.locator, self.where)

    def locate_whole_session(self) -> Session:
        """The session that the locator names, whoever wrote it.

        UsageError where its prompts alone are left.
        """
        session = self.locate_session(foreign=True)
        require_whole(session)
        return session

    def emit(self, data: object, text: Callable[[], str], warnings: Sequence[str] = ()) -> None:
        """Print the verb's answer."""
        emit(self.verb, data, text, as_json=self.as_json, warnings=warnings)

    def refuse_together(self, *names: str, remedy: str = "Leave one of them out.") -> None:
        """UsageError if more than one of these options was given."""
        given = [name for name in names if self.has(name)]
        if len(given) > 1:
            raise UsageError(
                f"{' and '.join(map(_flag_of_parameter, given))} exclude each other", remedy
            )

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        value = getattr(self, name)
        return value is not None and value is not False and value != ()

    def asked_of_parts(self, question: Question[Function]) -> list[Function]:
        """The functions of parts whose option on this verb was given, which answer a question."""
        found = []
        for part, names, _, function, _ in _options_of_parts(self.verb):
            if self.has(_parameter_name(names)):
                found.append(question.load(part, function))
        return found

    @property
    def watched(self) -> bool:
        """Whether somebody at a terminal sees the answer and can be asked."""
        return sys.stdin.isatty() and sys.stdout.isatty() and not self.as_json

    def asks(self, what: str) -> bool:
        """Whether to ask before writing.

        UsageError if nobody can be asked; ``what`` begins the sentence.
        """
        asks = not (self.yes or self.dry_run)
        if asks and not self.watched:
            remedy = "Add --yes, or --dry-run to see what would change."
            raise UsageError(f"{what} asks first, and here nobody can be asked", remedy)
        return asks

    def agreed(self, question: str, *, asks: bool) -> bool:
        """Whether to write: false in a dry run, or if ``asks`` and the user says no."""
        return not self.dry_run and (not asks or click.confirm(f"\n{question}", err=True))


class SessionOptions(VerbOptions):
    """The options of a verb about a session, by default the latest one of this folder."""

    locator: str | None = argument(
        metavar="[SESSION]", required=False, shell_complete=complete_locator
    )


class ChildOptions(SessionOptions):
    """The options of a verb that makes a child of a session."""

    output_dir: str | None = option(
        type=click.Path(exists=True, file_okay=False), help="Write the child there instead."
    )
    start: bool = flag(help="Start the client on the child.")
    dry_run: bool = DRY_RUN


def _options_of_parts(verb: str) -> list[tuple[str, tuple[str, ...], str, str, bool]]:
    """The rows of the table for the options that parts which are here have on a verb of the core."""
    parts = []
    for row in part_table.OPTIONS.get(verb, ()):
        if is_there(row[0]):
            parts.append(row)
    return parts


def _parameter_name(names: Sequence[str]) -> str:
    own = next((name for name in names if not name.startswith("-")), "")
    return own or next(name for name in names if name.startswith("--"))[2:].replace("-", "_")


def _flag_of_parameter(name: str) -> str:
    options = {}
    for parameter in click.get_current_context().command.params:
        options[parameter.name] = parameter.opts
    return max(options[name], key=len)


def locate_session(locator: str | None, where: Where, *, foreign: bool = False) -> Session:
    """The session that a locator names; another agent's if ``foreign``.

    UsageError for a sub-agent.
    """
    folder = current_folder()
    if locator and locate.names_subagent(locator):
        found = locate.resolve_transcript(locator, folder, where, foreign=foreign)
        if subagent_name(found.path):
            raise UsageError(
                f"{plain_line(found.session_id)} is a sub-agent, which this verb does not take",
                (
                    "Make a session of it first: resume-hooks fork "
                    f"{shlex.quote(plain_line(found.session_id))}"
                ),
            )
        return _load_session(found, where)
    session = _load_session(locate.resolve(locator, folder, where, foreign=foreign), where)
    if locator is None:
        _tell_taken(session, _unused_child(session, folder, where))
    return session


def _load_session(session: SessionFile, where: Where) -> Session:
    from resume_hooks.sessions.session import Session  # help and completion wait for this module

    return Session.of(session, where)


_TRIMS = ("trim", "smart-trim")


def locate_trim(locator: str | None, where: Where) -> Session:
    """The session to untrim: what the locator names.

    Without one a trim just made of what a locator would name.
    """
    if locator is not None:
        return locate_session(locator, where, foreign=True)
    taken = _load_session(locate.resolve(None, current_folder(), where, foreign=True), where)
    child = _unused_child(taken, current_folder(), where)
    if child is not None and child.kind in _TRIMS:
        print_text(
            f"This is about the trim of {taken.session_id} that nobody went on in yet.", err=True
        )
        return _load_session(child.session, where)
    _tell_taken(taken, child)
    return taken


class _UnusedChild(NamedTuple):
    """A child that nobody went on in yet, and how it was made."""

    session: SessionFile
    kind: str


def _unused_child(taken: SessionFile, folder: str, where: Where) -> _UnusedChild | None:
    """The newest session of a folder where that is a child of ``taken`` without a prompt.

    None where it is not.
    """
    from resume_hooks.transcripts.head_tail import (
        HeadTail,
    )  # help and completion wait for this module
    from resume_hooks.transcripts.provenance import read_parent

    newest = next(iter(locate.sessions_of(folder, where)), taken)
    if newest.session_id == taken.session_id or taken.session_id == where.environ.get(
        "CLAUDE_CODE_SESSION_ID"
    ):
        return None
    parent = read_parent(newest.path)
    if parent is None or parent.session_id != taken.session_id or HeadTail(newest.path).touched:
        return None
    return _UnusedChild(newest, parent.kind)


def _tell_taken(taken: Session, child: _UnusedChild | None) -> None:
    """Say which session was taken where there is a child of it that nobody went on in yet."""
    if child is not None:
        title = plain_line(taken.head_tail.title)
        why = f"not {child.session.session_id}, its child without a prompt"
        print_text(f"This is about {title} · {taken.session_id}, {why}.", err=True)


def locate_parent(locator: str | None, where: Where) -> Session:
    """What a locator names for a child to be made of it: a session, whoever wrote it, or a sub-agent.

    A sub-agent is a session until the verb has ended.
    """
    if locator:
        for as_session in answers(questions.subagent_as_session):
            context = as_session(locator, current_folder(), where)
            found = click.get_current_context().with_resource(context)
            if found is not None:
                return _load_session(found, where)
    return locate_session(locator, where, foreign=True)


def current_folder() -> str:
    """The current folder. UsageError if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Change to a folder that exists.") from error


def time_of_option(given: str) -> datetime:
    """The time that an option names. UsageError if it names none."""
    moment = clock.point(given)
    if moment is None:
        raise UsageError(f"'{given}' is not a date or a time", clock.WHEN)
    return moment


def refuse_unknown(words: tuple[str, ...]) -> None:
    """UsageError for what looks like an option that there is not."""
    import difflib  # nobody who types an option right waits for it

    for word in words:
        if re.match(r"--[^\s-]\S*\Z", word):
            option = word.partition("=")[0]
            options = (
                name for each in click.get_current_context().command.params for name in each.opts
            )
            near = "".join(
                f"Did you mean {name}? " for name in difflib.get_close_matches(option, options, 1)
            )
            find = f"To find it: resume-hooks search '\"{option}\"'"
            raise UsageError(
                f"No such option: {option}", f"{near}Options: resume-hooks search --help. {find}"
            )


def project_folder_of_option(given: str | None) -> str:
    """The folder of ``--project``, by default the current one."""
    return canonical(os.path.join(current_folder(), os.path.expanduser(given or ".")))


def notes_of(session_id: str, where: Where) -> list[str]:
    """The notes of parts on a session."""
    notes = []
    for note_on in answers(questions.note_on_session):
        notes.append(note_on(session_id, where))
    return [note for note in notes if note]
