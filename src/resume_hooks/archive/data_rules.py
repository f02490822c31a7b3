"""Store the account's data rules, such as ``hipaa`` or ``zdr``, as Claude Code last reported them.

Only the client knows these rules. It reports them to the plugin's module, which runs inside the
client. While a rule is in force, no copy leaves the machine, and we make no copy of a session that
outlives the client's own copy. Older clients report no rules. The stored rules then remain in
force.
"""

from __future__ import annotations

import contextlib
import json
import os

from resume_hooks.paths import Where, read_json_object
from resume_hooks.storage import removal, state_file

# Maximum number of stored rules, and maximum number of characters in a rule.
MAX_RULES, MAX_RULE_CHARACTERS = 20, 40
DATA_RULES_FILE = "data-rules.json"


def store_data_rules(reported_rules: object, where: Where) -> None:
    """Store the rules that a client reports. An empty list means that there are no rules.

    A value that is not a list is ignored. Raises OSError if the rules cannot be stored.
    """
    if not isinstance(reported_rules, list):
        return
    rules = [rule for rule in reported_rules if isinstance(rule, str) and rule.isprintable()][
        :MAX_RULES
    ]
    path = os.path.join(where.state, DATA_RULES_FILE)
    if rules and rules != list(read_data_rules(where)):
        state_file.replace_state_file(
            path,
            json.dumps({"rules": [rule[:MAX_RULE_CHARACTERS] for rule in rules]}).encode(),
            where,
        )
    elif not rules:
        with contextlib.suppress(FileNotFoundError):
            removal.remove_file(path, where.state)


def read_data_rules(where: Where) -> tuple[str, ...]:
    """Return the rules that the client last reported."""
    rules = read_json_object(os.path.join(where.state, DATA_RULES_FILE)).get("rules")
    if isinstance(rules, list):
        return tuple(rule for rule in rules if isinstance(rule, str))
    return ()


def find_reason_not_to_copy(where: Where) -> str:
    """Return why copies may not be made, as the end of a sentence, or ``""`` if they may be made."""
    rules = ", ".join(read_data_rules(where))
    if rules:
        return f"this account's data rules ({rules}) are in force, as Claude Code reported"
    return ""
