"""Call parts without importing them by name.

Invariant: the core never imports a part directly. It reads ``part_table``, which is generated from
the declarations in ``parts/<name>/__init__.py``, and loads a part's module when it is first used.
This module uses only the standard library and must run on Python 3.9.
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

PARTS_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parts")


class Trigger(NamedTuple):
    """A trigger: its name (the word after ``>``), its arguments, and its description.

    ``module`` contains the function ``answer_request``, which takes a ``hooks.request.Request`` and
    returns a ``derive.outcome.Outcome``. ``help_row`` is the trigger's row in the output of
    ``>help``, or ``""`` if another trigger's row mentions it. ``command`` is the trigger's name
    after ``/`` in a client that loads hooks/register.mjs. If ``needs_client_module`` is set, the
    trigger works only in these clients. If ``takes_no_words`` is set, a prompt with words after the
    name is not a trigger. If ``asks_first`` is set, the trigger asks for confirmation, and the user
    may type it again to confirm. If ``is_read_only`` is set, the command may run while the model is
    working. ``insert_before`` is the name of the core's trigger before which lists show this one.
    """

    name: str
    argument: str
    description: str
    module: str = ""
    insert_before: str = ""
    help_row: str = ""
    aliases: Tuple[str, ...] = ()
    command: str = ""
    takes_no_words: bool = False
    asks_first: bool = False
    is_read_only: bool = False
    needs_client_module: bool = False


Function = TypeVar("Function", bound=Callable[..., Any])


class PartQuestion(Generic[Function]):
    """A question to the parts. The type parameter is the type of the functions that answer it.

    All questions are declared in the module ``questions``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def load_function(self, part: str, function: str) -> Function:
        """Load a function, given as ``module:function`` in a part. For the core, ``part`` is ``""``.

        Raise ImportError or AttributeError.
        """
        return cast("Function", load_part_object(part, function))


def declare_question(signature: Function) -> PartQuestion[Function]:
    """Return a question with the name and the type of the decorated function."""
    return PartQuestion(signature.__name__)


def is_installed(part: str) -> bool:
    """Check whether the folder of a part exists."""
    return os.path.isfile(os.path.join(PARTS_FOLDER, part, "__init__.py"))


def insert_part_names(
    core_names: Iterable[str], part_rows: Mapping[str, Sequence[Any]]
) -> List[str]:
    """Return the core's names, with the names that installed parts add inserted among them.

    ``part_rows`` maps each name that a part adds to a row. The first item of the row is the part's
    name. The last item is the core's name before which the new name is inserted.
    """
    names = list(core_names)
    for name, row in part_rows.items():
        if is_installed(row[0]):
            names.insert(names.index(row[-1]), name)
    return names


def verb_module(verb: str) -> Optional[str]:
    """Return the module that declares the verb of a part, or None for a verb of the core.

    Raise UsageError if the part is not installed.
    """
    return _module_of_verb(verb, "verbs")


def form_module(verb: str) -> Optional[str]:
    """Return the module with the JSON schema of a part's verb, or None for a verb of the core.

    Raise UsageError if the part is not installed.
    """
    return _module_of_verb(verb, "forms")


def _module_of_verb(verb: str, module_name: str) -> Optional[str]:
    if verb not in part_table.VERBS:
        return None
    part = part_table.VERBS[verb][0]
    if not is_installed(part):
        raise UsageError(
            f"{verb} belongs to the part {part}, which is not installed",
            "Reinstall resume-hooks.",
        )
    return f"{__package__}.parts.{part}.{module_name}"


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


def find_answers(question: PartQuestion[Function]) -> Iterator[Function]:
    """Yield the functions of the installed parts that answer a question.

    Raise ImportError or AttributeError if a function can't be loaded.
    """
    for part, function in part_table.FUNCTIONS_BY_QUESTION.get(question.name, ()):
        if is_installed(part):
            yield question.load_function(part, function)


def load_part_object(part: str, location: str) -> Any:
    """Load the object at ``location`` (``module:name``) in a part. For the core, ``part`` is ``""``.

    Raise ImportError or AttributeError.
    """
    module, _, name = location.partition(":")
    package = f"{__package__}.parts.{part}" if part else __package__
    return getattr(importlib.import_module(f"{package}.{module}"), name)
