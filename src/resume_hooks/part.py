"""The types with which a part declares what it adds to the core, in its constant ``PART``.

Only parts and the generator of ``part_table`` import this module. The core reads the table. This
module uses only the standard library and must run on Python 3.9.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple, Union

from resume_hooks.seam import PartQuestion, Trigger


class Verb(NamedTuple):
    """A verb that a part adds: its name and its description in the help.

    It is listed directly before the core verb that ``insert_before`` names. The part's ``verbs`` module
    declares its options, and the part's ``forms`` module declares its JSON output.
    """

    name: str
    description: str
    insert_before: str


class FormerVerb(NamedTuple):
    """A verb of an earlier version, and the verb that replaces it."""

    name: str
    replacement: str


class WayToContinue(NamedTuple):
    """A way to continue a session: its command, and a description of its result.

    In lists, the way stands directly before the way ``insert_before``.
    """

    name: str
    description: str
    insert_before: str


class Option(NamedTuple):
    """An option that a part adds to a verb of the core: its names as in click, and its description.

    If the user gives the option, the verb calls ``function`` (``module:function`` in the part). The
    function takes the arguments that the verb's question in ``questions`` declares.
    """

    verb: str
    names: Tuple[str, ...]
    description: str
    function: str
    is_flag: bool = True


class Setting(NamedTuple):
    """A setting that a part adds.

    ``insert_before`` names the next setting in lists. ``parser_factory`` is a key of
    ``settings.PARSER_FACTORIES``. The factory is called with ``parser_arguments`` and returns the
    parser. Therefore settings can be read without loading the part.
    """

    name: str
    default: Union[int, str]
    description: str
    parser_factory: str
    parser_arguments: Tuple[object, ...]
    insert_before: str


class Check(NamedTuple):
    """A check that a part adds to doctor, before the core's check ``insert_before``."""

    name: str
    function: str
    insert_before: str


class Agent(NamedTuple):
    """An agent other than Claude Code: its name, where its sessions are, and the functions for them.

    ``home_variable`` is the name of the environment variable with the path of the agent's home. By
    default, the home is the folder ``default_home`` in the user's home. If ``home_variable`` is
    empty, ``default_home`` is a file in the client's configuration folder. The home's subfolders
    ``session_folders`` contain the sessions, in files whose names match ``file_pattern``.

    ``session_id_variable`` is the name of the environment variable with the id of the agent's
    session in which we are running, or ``""`` if the agent's sessions can't be resumed.
    ``loss_note`` says what is missing in the agent's sessions, if anything is missing. The other
    fields name functions that ``questions`` describes.
    """

    name: str
    home_variable: str = ""
    default_home: str = ""
    session_folders: Tuple[str, ...] = ()
    file_pattern: str = "(?!)"
    session_id_variable: str = ""
    loss_note: str = ""
    strategy_entry_point: str = ""
    writer_entry_point: str = ""
    defect_finder_entry_point: str = ""
    loss_checker_entry_point: str = ""
    model_entry_point: str = ""


class Host(NamedTuple):
    """A client other than Claude Code whose hooks call this plugin.

    Each event that the client sends contains all of ``event_fields``. ``host_location``
    (``module:name`` in the part) is the location of the client's ``hooks.hook_replies.Host``
    object.
    """

    name: str
    event_fields: Tuple[str, ...]
    host_location: str


class Answer(NamedTuple):
    """A function (``module:function`` in the part) that answers one of ``questions``."""

    question: PartQuestion[Any]
    function: str


class Part(NamedTuple):
    """Everything that a part adds to the core."""

    verbs: Tuple[Verb, ...] = ()
    former_verbs: Tuple[FormerVerb, ...] = ()
    ways_to_continue: Tuple[WayToContinue, ...] = ()
    options: Tuple[Option, ...] = ()
    settings: Tuple[Setting, ...] = ()
    triggers: Tuple[Trigger, ...] = ()
    checks: Tuple[Check, ...] = ()
    agents: Tuple[Agent, ...] = ()
    hosts: Tuple[Host, ...] = ()
    answers: Tuple[Answer, ...] = ()
