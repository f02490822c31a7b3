"""The types of a part's contributions: the fields of ``PART``. Standard library, Python 3.9.

Only the parts and the generator of ``part_table`` import this module; the core reads the table.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple, Union

from resume_hooks.seam import Question, Trigger


class Verb(NamedTuple):
    """A verb of a part: its name, its line in the help, and the verb of the core that follows it there.

    The part's module ``verbs`` declares its options in a class of the same name; ``forms`` defines
    its ``--json`` output.
    """

    name: str
    about: str
    before: str


class FormerVerb(NamedTuple):
    """A former verb and its replacement."""

    name: str
    replacement: str


class Way(NamedTuple):
    """A way to continue a session: its command, a description of its result, and the way that follows it in lists."""

    name: str
    about: str
    before: str


class Option(NamedTuple):
    """An option that a part adds to a verb of the core: its names in click's form, and its line in the help.

    If the option is given, the verb calls ``function``, ``module:function`` below the part, with
    the signature that ``questions`` defines for the verb.
    """

    verb: str
    names: Tuple[str, ...]
    about: str
    function: str
    is_flag: bool = True


class Setting(NamedTuple):
    """A setting: its default, its line in the list, the parser of its values, and the next setting in the list.

    ``parser_factory`` names a factory in ``settings.PARSER_FACTORIES``, which is called with
    ``parser_arguments``, so that reading settings loads no part.
    """

    name: str
    default: Union[int, str]
    about: str
    parser_factory: str
    parser_arguments: Tuple[object, ...]
    before: str


class Check(NamedTuple):
    """A check of doctor: its name, the function that returns its finding, and the check that follows it."""

    name: str
    function: str
    before: str


class Agent(NamedTuple):
    """An agent other than Claude Code: its name, its files, and the part's functions that understand them.

    ``home`` is a folder below the user's home unless the variable ``home_variable`` names another;
    without a variable it is a file in the client's config folder. Its subfolders ``folders``
    contain the sessions, in files whose name matches ``file_pattern``. ``session_variable``
    names the variable with the id of the session that started our shell, ``""`` if the agent's
    sessions can't be resumed. ``loss_note`` describes the missing content of incomplete sessions. ``strategy``,
    ``writer``, ``defects``, ``is_loss`` and ``model`` are functions that ``questions`` describes.
    """

    name: str
    home_variable: str = ""
    home: str = ""
    folders: Tuple[str, ...] = ()
    file_pattern: str = "(?!)"
    session_variable: str = ""
    loss_note: str = ""
    strategy: str = ""
    writer: str = ""
    defects: str = ""
    is_loss: str = ""
    model: str = ""


class Host(NamedTuple):
    """A client whose hooks call us, recognised by the fields of its events.

    ``host`` names its ``hooks.hook_replies.Host``.
    """

    name: str
    fields: Tuple[str, ...]
    host: str


class Answer(NamedTuple):
    """The function, ``module:function`` below the part, that answers one of ``questions``."""

    question: Question[Any]
    function: str


class Part(NamedTuple):
    """All contributions of a part."""

    verbs: Tuple[Verb, ...] = ()
    former_verbs: Tuple[FormerVerb, ...] = ()
    ways: Tuple[Way, ...] = ()
    options: Tuple[Option, ...] = ()
    settings: Tuple[Setting, ...] = ()
    triggers: Tuple[Trigger, ...] = ()
    checks: Tuple[Check, ...] = ()
    agents: Tuple[Agent, ...] = ()
    hosts: Tuple[Host, ...] = ()
    answers: Tuple[Answer, ...] = ()
