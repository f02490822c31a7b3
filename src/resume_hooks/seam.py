"""The seam between the core and its parts: what a part may bring, and how the core asks without knowing a name.

Invariant: the core imports no part. It reads ``part_table``, which is made from what each part says of itself in
``parts/<name>/__init__.py``, and loads a module of a part once something of it was asked for.
Standard library, Python 3.9.
"""

from __future__ import annotations

import importlib
import keyword
import os
from typing import Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from resume_hooks import part_table
from resume_hooks.errors import UsageError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parts")


class Verb(NamedTuple):
    """A verb of a part: its name, its line in the help, and the verb of the core that it stands before there.

    Its command is ``command`` in ``verbs``, in the module of its name, its form of ``--json`` in ``forms``.
    """

    name: str
    about: str
    before: str


class Way(NamedTuple):
    """A way to continue a session, by the verb of its name: what it leaves, and the way before which it is offered."""

    name: str
    about: str
    before: str


class Option(NamedTuple):
    """An option on a verb of the core: its names, as click takes them, and its line in the help.

    Where it is given the verb calls ``function``, ``module:function`` below the part, as it says where it asks.
    """

    verb: str
    names: Tuple[str, ...]
    about: str
    function: str
    is_flag: bool = True


class Setting(NamedTuple):
    """A setting: its default, its line in the list, how a value is read, and the setting before which it stands.

    ``form`` is one of ``settings.FORMS``, which is called with ``given``: so no part is loaded to read settings.
    """

    name: str
    default: Union[int, str]
    about: str
    form: str
    given: Tuple[object, ...]
    before: str


class Trigger(NamedTuple):
    """A trigger of a prompt: what is typed behind ``>``, what may follow it, and what it does; commands/ say the same.

    ``lane`` is the module below the part whose ``answer`` takes a ``hooks.request.Request`` and gives a
    ``TriggerAnswer``; ``row`` its row in the card of ``>help``, ``""`` where another's names it; ``commands`` are its
    names behind a bare ``/``, as hooks/register.mjs has them. One that fires ``alone`` is none before other words; one
    that ``asks`` may be typed over itself again, with a yes. It stands before a trigger of the core.
    """

    name: str
    argument: str
    about: str
    lane: str
    before: str
    row: str = ""
    aliases: Tuple[str, ...] = ()
    commands: Tuple[str, ...] = ()
    alone: bool = False
    asks: bool = False


class Check(NamedTuple):
    """A check of doctor: its name, the function that makes its finding, and the check before which it stands."""

    name: str
    function: str
    before: str


class Agent(NamedTuple):
    """An agent beside this client, by one word, and the functions of the part that know its form of a session.

    ``home`` is a folder of the user's unless ``home_variable`` names another; without a variable it is a file in this
    client's config folder. Below it ``folders`` hold sessions, in files whose whole name ``named`` matches.
    ``session_variable`` has the id of the session whose shell we run in, "" where nobody can go on in a session.
    ``left`` is what to say of its sessions where they are not whole. ``strategy``, ``writer``, ``defects``, ``is_loss``
    and ``model`` are functions as ``sessions.agents``, ``derive.agents``, ``fsck.agents`` and ``model.headless`` ask.
    """

    name: str
    home_variable: str = ""
    home: str = ""
    folders: Tuple[str, ...] = ()
    named: str = "(?!)"
    session_variable: str = ""
    left: str = ""
    strategy: str = ""
    writer: str = ""
    defects: str = ""
    is_loss: str = ""
    model: str = ""


class Host(NamedTuple):
    """A client whose hooks ask us, told by the fields that its events have; ``host`` is its ``hooks.hosts.Host``."""

    name: str
    fields: Tuple[str, ...]
    host: str


class Answer(NamedTuple):
    """What answers a question of the core, of which each is documented where it is asked."""

    question: str
    function: str


class Part(NamedTuple):
    """All that a part brings."""

    verbs: Tuple[Verb, ...] = ()
    ways: Tuple[Way, ...] = ()
    options: Tuple[Option, ...] = ()
    settings: Tuple[Setting, ...] = ()
    triggers: Tuple[Trigger, ...] = ()
    checks: Tuple[Check, ...] = ()
    agents: Tuple[Agent, ...] = ()
    hosts: Tuple[Host, ...] = ()
    answers: Tuple[Answer, ...] = ()


def is_there(part: str) -> bool:
    """Whether the folder of a part is here."""
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


def module_name(verb: str) -> str:
    """The module of a verb, by its name alone."""
    name = verb.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def verb_module(verb: str) -> Optional[str]:
    """The module of a part's verb; None for a verb of no part. UsageError where its part is not here."""
    return _module(verb, f"verbs.{module_name(verb)}")


def form_module(verb: str) -> Optional[str]:
    """The module with the form of ``--json`` of a part's verb; None for a verb of no part. UsageError as above."""
    return _module(verb, "forms")


def _module(verb: str, inner: str) -> Optional[str]:
    if verb not in part_table.VERBS:
        return None
    part = part_table.VERBS[verb][0]
    if not is_there(part):
        raise UsageError(f"{verb} is in the part {part}, which is not installed here", "Install resume-hooks anew.")
    return f"{__package__}.parts.{part}.{inner}"


def triggers() -> List[Trigger]:
    """The triggers of parts that are here, each with its lane as a whole name."""
    found = [(row[0], Trigger(name, *row[1:])) for name, row in part_table.TRIGGERS.items() if is_there(row[0])]
    return [each._replace(lane=f"{__package__}.parts.{part}.{each.lane}") for part, each in found]


def answers(question: str) -> Iterator[Callable[..., Any]]:
    """The functions of the parts that are here which answer a question. One that fails to load raises."""
    for part, function in part_table.ANSWERS.get(question, ()):
        if is_there(part):
            yield function_of(part, function)


def function_of(part: str, function: str) -> Any:
    """Load a function, or a value, of a part: ``module:function`` below it. ImportError, AttributeError."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(f"{__package__}.parts.{part}.{module}"), name)
