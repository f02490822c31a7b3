"""What a part says that it brings: the values of ``PART``. Standard library, Python 3.9.

Parts alone load it, and what makes ``part_table`` of them; the core reads the table.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple, Union

from resume_hooks.seam import Question, Trigger


class Verb(NamedTuple):
    """A verb of a part: its name, its line in the help, and the verb of the core that it stands before there.

    ``verbs`` declares its options, by a class of its name, ``forms`` has its form of ``--json``.
    """

    name: str
    about: str
    before: str


class Former(NamedTuple):
    """A verb that there was, and what does the same now."""

    name: str
    now: str


class Way(NamedTuple):
    """A way to continue a session, as its verb is typed: what it leaves, and the way before which it is offered."""

    name: str
    about: str
    before: str


class Option(NamedTuple):
    """An option on a verb of the core: its names, as click takes them, and its line in the help.

    Where it is given the verb calls ``function``, ``module:function`` below the part, as
    ``questions`` says for options of that verb.
    """

    verb: str
    names: Tuple[str, ...]
    about: str
    function: str
    is_flag: bool = True


class Setting(NamedTuple):
    """A setting: its default, its line in the list, how a value is read, and the setting before which it stands.

    ``form`` is one of ``settings.FORMS``, which is called with ``given``: so no part is loaded to
    read settings.
    """

    name: str
    default: Union[int, str]
    about: str
    form: str
    given: Tuple[object, ...]
    before: str


class Check(NamedTuple):
    """A check of doctor: its name, the function that makes its finding, and the check before which it stands."""

    name: str
    function: str
    before: str


class Agent(NamedTuple):
    """An agent beside this client, by one word, and the functions of the part that know its form of a session.

    ``home`` is a folder of the user's unless ``home_variable`` names another; without a variable it
    is a file in this client's config folder. Below it ``folders`` hold sessions, in files whose
    whole name ``named`` matches. ``session_variable`` has the id of the session whose shell we run
    in, "" where nobody can go on in a session. ``left`` is what to say of its sessions where they
    are not whole. ``strategy``, ``writer``, ``defects``, ``is_loss`` and ``model`` are functions as
    ``questions`` describes them.
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
    """A client whose hooks ask us, told by the fields that its events have; ``host`` is its ``hooks.reply.Host``."""

    name: str
    fields: Tuple[str, ...]
    host: str


class Answer(NamedTuple):
    """The function, ``module:function`` below the part, that answers one of ``questions``."""

    question: Question[Any]
    function: str


class Part(NamedTuple):
    """All that a part brings."""

    verbs: Tuple[Verb, ...] = ()
    former: Tuple[Former, ...] = ()
    ways: Tuple[Way, ...] = ()
    options: Tuple[Option, ...] = ()
    settings: Tuple[Setting, ...] = ()
    triggers: Tuple[Trigger, ...] = ()
    checks: Tuple[Check, ...] = ()
    agents: Tuple[Agent, ...] = ()
    hosts: Tuple[Host, ...] = ()
    answers: Tuple[Answer, ...] = ()
