"""The seam between the core and its parts: the core finds and calls parts without importing them by name.

Invariant: the core imports no part. It reads ``part_table``, generated from the declarations in
``parts/<name>/__init__.py``, and loads a part's module on first use. Standard library, Python 3.9.
"""

from __future__ import annotations

import importlib
import os
from typing import (
    Any,
    Callable,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    cast,
)

from resume_hooks import part_table
from resume_hooks.errors import UsageError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parts")


class Trigger(NamedTuple):
    """A trigger of a prompt: the word after ``>``, its arguments, and its description.

    ``module`` is the module below the part whose function ``answer_request`` takes a
    ``hooks.request.Request`` and returns a ``derive.outcome.Outcome``. ``row`` is its row in the
    card of ``>help``, ``""`` if another trigger's row names it. ``command`` is its name after ``/``
    if hooks/register.mjs runs; only that module knows an ``is_module_only`` trigger. If
    ``takes_no_words``, a prompt with other words is not this trigger. If ``asks_first``, the user
    may repeat the trigger with a yes. An ``is_read_only`` trigger is allowed there while the model
    works. ``before`` names the core's trigger that follows it in lists.
    """

    name: str
    argument: str
    about: str
    module: str = ""
    before: str = ""
    row: str = ""
    aliases: Tuple[str, ...] = ()
    command: str = ""
    takes_no_words: bool = False
    asks_first: bool = False
    is_read_only: bool = False
    is_module_only: bool = False


Function = TypeVar("Function", bound=Callable[..., Any])


class Question(Generic[Function]):
    """A question to the parts: its name, and the type of the functions that answer it.

    The module ``questions`` defines all of them.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, part: str, function: str) -> Function:
        """Load ``module:function`` below a part, or below the core if the part is ``""``.

        Raise ImportError or AttributeError.
        """
        return cast("Function", load_value(part, function))


def declare_question(signature: Function) -> Question[Function]:
    """Return a question with the name and type of a function, which is never called."""
    return Question(signature.__name__)


def is_installed(part: str) -> bool:
    """Check whether a part's folder exists."""
    return os.path.isfile(os.path.join(FOLDER, part, "__init__.py"))


def insert_part_names(
    core_names: Iterable[str], part_rows: Mapping[str, Sequence[Any]]
) -> List[str]:
    """Return the names of the core with those of the installed parts inserted at their places.

    In ``part_rows`` each row starts with the part and ends with the name that follows in
    the order.
    """
    names = list(core_names)
    for name, row in part_rows.items():
        if is_installed(row[0]):
            names.insert(names.index(row[-1]), name)
    return names


def verb_module(verb: str) -> Optional[str]:
    """Return the module that declares a part's verb, or None for a verb of the core.

    Raise UsageError if its part is not installed.
    """
    return _module_of_verb(verb, "verbs")


def form_module(verb: str) -> Optional[str]:
    """Return the module with the ``--json`` form of a part's verb, or None for a verb of the core.

    Raise UsageError if its part is not installed.
    """
    return _module_of_verb(verb, "forms")


def _module_of_verb(verb: str, inner: str) -> Optional[str]:
    if verb not in part_table.VERBS:
        return None
    part = part_table.VERBS[verb][0]
    if not is_installed(part):
        raise UsageError(
            f"{verb} belongs to the part {part}, which is not installed",
            "Reinstall resume-hooks.",
        )
    return f"{__package__}.parts.{part}.{inner}"


def list_triggers() -> List[Trigger]:
    """Return the triggers of the installed parts, each with the full name of its module."""
    rows = []
    for name, row in part_table.TRIGGERS.items():
        if is_installed(row[0]):
            rows.append((row[0], Trigger(name, *row[1:])))
    return [
        trigger._replace(module=f"{__package__}.parts.{part}.{trigger.module}")
        for part, trigger in rows
    ]


def find_answers(question: Question[Function]) -> Iterator[Function]:
    """Yield the functions with which the installed parts answer a question.

    A function that fails to load raises.
    """
    for part, function in part_table.ANSWERS.get(question.name, ()):
        if is_installed(part):
            yield question.load(part, function)


def load_value(part: str, value: str) -> Any:
    """Load ``module:name`` below a part, or below the core if the part is ``""``.

    Raise ImportError or AttributeError.
    """
    module, _, name = value.partition(":")
    package = f"{__package__}.parts.{part}" if part else __package__
    return getattr(importlib.import_module(f"{package}.{module}"), name)
