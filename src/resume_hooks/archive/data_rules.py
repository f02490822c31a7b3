"""Owns the data rules of the account that Claude Code works for, such as ``hipaa`` or ``zdr``: what it told last.

Only the client knows them, and tells the module inside it. While there is one, no copy of a session
is made that outlives the client's own, and none leaves the machine. A client that tells none, an
older one, changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os

from resume_hooks.paths import Where, read_json_object
from resume_hooks.storage import removal, state_file

MOST, LONGEST = 20, 40  # rules that are kept, and characters of one
FILE = "data-rules.json"


def note_data_rules(told: object, where: Where) -> None:
    """Store the rules that a client reports, ``[]`` for none; anything but a list is ignored.

    Raises OSError.
    """
    if not isinstance(told, list):
        return
    rules = [rule for rule in told if isinstance(rule, str) and rule.isprintable()][:MOST]
    path = os.path.join(where.state, FILE)
    if rules and rules != list(rules_in_force(where)):
        state_file.replace_state_file(
            path, json.dumps({"rules": [rule[:LONGEST] for rule in rules]}).encode(), where
        )
    elif not rules:
        with contextlib.suppress(FileNotFoundError):
            removal.remove_file(path, where.state)


def rules_in_force(where: Where) -> tuple[str, ...]:
    """The rules that the client last reported."""
    rules = read_json_object(os.path.join(where.state, FILE)).get("rules")
    if isinstance(rules, list):
        return tuple(rule for rule in rules if isinstance(rule, str))
    return ()


def reason_against_copies(where: Where) -> str:
    """Why nothing is copied, as the end of a sentence; ``""`` where there is no rule."""
    rules = ", ".join(rules_in_force(where))
    if rules:
        return f"this account's data rules ({rules}) are in force, as Claude Code told"
    return ""
