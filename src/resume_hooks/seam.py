"""The seam between the core and its parts: how the core knows what there is, and asks, without knowing a name.

Invariant: the core imports no part. It reads ``part_table``, which is made from what each part says
of itself in ``parts/<name>/__init__.py``, and loads a module of a part once something of it was
asked for. Standard library, Python 3.9.
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
    """A trigger of a prompt: what is typed behind ``>``, what may follow it, and what it does.

    ``lane`` is the module below the part whose ``answer`` takes a ``hooks.request.Request`` and
    gives a ``derive.outcome.Outcome``; ``row`` its row in the card of ``>help``, ``""`` where another's
    names it; ``bare`` its name behind ``/`` where hooks/register.mjs runs; one that is ``inside``
    is a trigger only there. One that fires only ``alone`` is not a trigger before other words; one
    that ``asks`` may be typed over itself again, with a yes; one that ``reads`` may be typed there
    while the model works. ``before`` names the core's trigger that it precedes.
    """

    name: str
    argument: str
    about: str
    lane: str = ""
    before: str = ""
    row: str = ""
    aliases: Tuple[str, ...] = ()
    bare: str = ""
    alone: bool = False
    asks: bool = False
    reads: bool = False
    inside: bool = False


Function = TypeVar("Function", bound=Callable[..., Any])


class Question(Generic[Function]):
    """A question to the parts: its name, and as a type the functions that answer it.

    All of them are in ``questions``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, part: str, function: str) -> Function:
        """Load a function, ``module:function`` below a part or, for the part ``""``, below the core.

        ImportError, AttributeError.
        """
        return cast("Function", load_value(part, function))


def question_of(signature: Function) -> Question[Function]:
    """The question with the name and the type of a function, which is never called."""
    return Question(signature.__name__)


def is_there(part: str) -> bool:
    """Whether a part's folder exists."""
    return os.path.isfile(os.path.join(FOLDER, part, "__init__.py"))


def with_parts(core: Iterable[str], brought: Mapping[str, Sequence[Any]]) -> List[str]:
    """The names of the core and those that parts which are here bring, in their order.

    ``brought`` is a table whose rows begin with the part and end with what the name stands before.
    """
    names = list(core)
    for name, row in brought.items():
        if is_there(row[0]):
            names.insert(names.index(row[-1]), name)
    return names


def verb_module(verb: str) -> Optional[str]:
    """The module that declares a part's verb; None for a verb of the core.

    UsageError if its part is not installed.
    """
    return _module_of_verb(verb, "verbs")


def form_module(verb: str) -> Optional[str]:
    """The module with the ``--json`` form of a part's verb; None for a verb of the core.

    UsageError as above.
    """
    return _module_of_verb(verb, "forms")


def _module_of_verb(verb: str, inner: str) -> Optional[str]:
    if verb not in part_table.VERBS:
        return None
    part = part_table.VERBS[verb][0]
    if not is_there(part):
        raise UsageError(
            f"{verb} is in the part {part}, which is not installed here",
            "Install resume-hooks anew.",
        )
    return f"{__package__}.parts.{part}.{inner}"


def triggers() -> List[Trigger]:
    """The triggers of the installed parts, each with the full name of its lane."""
    found = []
    for name, row in part_table.TRIGGERS.items():
        if is_there(row[0]):
            found.append((row[0], Trigger(name, *row[1:])))
    return [each._replace(lane=f"{__package__}.parts.{part}.{each.lane}") for part, each in found]


def answers(question: Question[Function]) -> Iterator[Function]:
    """The functions with which the installed parts answer a question.

    One that fails to load raises.
    """
    for part, function in part_table.ANSWERS.get(question.name, ()):
        if is_there(part):
            yield question.load(part, function)


def load_value(part: str, value: str) -> Any:
    """Load a value, ``module:name`` below a part or the core. ImportError, AttributeError."""
    module, _, name = value.partition(":")
    package = f"{__package__}.parts.{part}" if part else __package__
    return getattr(importlib.import_module(f"{package}.{module}"), name)
