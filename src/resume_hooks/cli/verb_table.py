"""The table of all verbs: each verb's line in the help, and the module that declares the verb."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from resume_hooks import part_table, seam
from resume_hooks.errors import UsageError
from resume_hooks.seam import insert_part_names, verb_module

if TYPE_CHECKING:
    import click

_CORE_VERBS = {
    "resume": ("resume", "Choose a session, compare what continuing it would cost, and continue."),
    "continue": (
        "resume",
        "Continue the latest session of this folder, or a named one.",
    ),
    "sessions": ("sessions", "List sessions, newest first: titles, sizes, tokens, what expires."),
    "handoff": ("children", "Continue in a fresh, linked session with a digest and the next step."),
    "rollover": ("children", "Continue in a fresh, linked session with a summary by a model."),
    "trim": (
        "children",
        "Continue in a copy without old tool output; the omitted output can still be read.",
    ),
    "fork": (
        "children",
        "Copy a session's live conversation, or only its beginning, into a new session.",
    ),
    "untrim": ("children", "Restore trimmed contents in a new child."),
    "search": ("search", "Search everything that was said, asked or run."),
    "outline": ("reading", "Show the turns of a session, one line each."),
    "read": (
        "reading",
        "Print records of a session: one by its reference, turns, errors, or commands.",
    ),
    "lineage": ("sessions", "Show a session's ancestors, oldest first, or its descendants."),
    "info": (
        "sessions",
        "Show a session's facts: id, file, turns, tokens, records.",
    ),
    "rename": ("sessions", "Give a session a title, or a tag."),
    "delete": ("archives", "Move a session to the trash."),
    "archive": (
        "archives",
        "Archive sessions before the client deletes them; list, verify or remove copies.",
    ),
    "restore": ("archives", "Restore a deleted or an archived session."),
    "fsck": ("upkeep", "Report damage in a session; --repair makes a repaired child."),
    "doctor": (
        "upkeep",
        "Check the installation and show remedies; maintain the search index.",
    ),
    "config": ("upkeep", "Show or change the settings."),
    "install": (
        "upkeep",
        "Register the plugin with Claude Code, or remove it; print a completion script.",
    ),
    "slash": ("upkeep", ""),
}
"""The verbs of the core.

Each verb has two values: the name of the module in ``verbs`` and in ``schema`` that declares the
verb, and the verb's line in the help.
"""

_VERB_ROWS = {
    name: _CORE_VERBS.get(name) or part_table.VERBS[name][:2]
    for name in insert_part_names(_CORE_VERBS, part_table.VERBS)
}
VERBS = {name: line for name, (_, line) in _VERB_ROWS.items() if line}
"""The verbs that the help lists, in the order of the help. The hidden verb ``slash`` is not
included."""

VERB_ALIASES = {
    "find-original": ("lineage", "--original"),
    "find-derived": ("lineage", "--derived"),
    "smart-trim": ("trim", "--smart"),
}
"""Other names of verbs. For example, ``find-original`` runs ``lineage --original``."""

FORMER_VERBS = {
    "resolve": "info",
    "tag": "rename --tag",
    "completion": "install --completion",
    "uninstall": "install --remove",
    "index": "doctor --index",
    **{
        name: now
        for name, (part, now) in part_table.FORMER_VERBS.items()
        if seam.is_installed(part)
    },
}
"""Verbs of earlier versions, each with the command that replaces it."""


def is_verb(name: str) -> bool:
    """Check whether a name is or was the name of a verb, even of a part that is not installed."""
    return name in _CORE_VERBS or name in part_table.VERBS or name in FORMER_VERBS


def load_command(verb: str) -> click.Command:
    """Import a verb and return its command.

    Raise UsageError for a verb of an earlier version, or if the part that has the verb is not
    installed.
    """
    if verb in FORMER_VERBS:
        raise UsageError(
            f"`{verb}` is `{FORMER_VERBS[verb]}` now",
            f"resume-hooks {FORMER_VERBS[verb].split()[0]} --help",
        )
    module = verb_module(verb) or f"{__package__}.verbs.{_CORE_VERBS[verb][0]}"
    command: click.Command = getattr(
        importlib.import_module(module), f"{schema_class_prefix(verb)}Options"
    ).make_command()
    return command


def schema_module_name(verb: str) -> str:
    """Return the name of the module with the schema of a verb's JSON output.

    Raise UsageError if the part that has the verb is not installed.
    """
    return seam.form_module(verb) or f"{__package__}.schema.{_CORE_VERBS[verb][0]}"


def schema_class_prefix(verb: str) -> str:
    """Return the prefix of a verb's class names, for example ``Handoff`` in ``HandoffOptions``."""
    return "".join(word.capitalize() for word in verb.split("-"))
