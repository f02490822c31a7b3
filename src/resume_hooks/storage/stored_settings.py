"""Change one setting in this plugin's settings file without changing the others."""

from __future__ import annotations

import json

from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.paths import Where, read_json_object
from resume_hooks.settings import (
    FILE_FORMAT_VERSION,
    Value,
    is_damaged,
    load_settings,
    parse_setting,
    settings_file,
)
from resume_hooks.storage import state_file

_REMEDIES_BY_OVERRIDING_SOURCE = {
    "environment": "The variable RESUME_HOOKS_{} overrides the settings file. Unset the variable first.",
    "plugin": (
        "A plugin option overrides the settings file. To change the option: /plugin configure resume-hooks"
    ),
}
"""What the user must do if the value from a different source overrides the settings file."""


def store_setting(name: str, text: str, where: Where | None = None) -> Value:
    """Write one setting and return its value.

    Raise UsageError if the setting is unknown, if its value is invalid, or if an environment
    variable or a plugin option with a different value would override it. Raise WriteFailed if the
    file can't be written.
    """
    value = parse_setting(name, text)
    where = where or Where()
    effective_value, source = load_settings(where)[name]
    if source in _REMEDIES_BY_OVERRIDING_SOURCE and effective_value != value:
        raise UsageError(
            f"{name} stays {effective_value}",
            _REMEDIES_BY_OVERRIDING_SOURCE[source].format(name.upper()),
        )
    path = settings_file(where)
    stored = read_json_object(path)  # The file's other settings must be kept.
    if not stored and is_damaged(path):
        raise WriteFailed(
            f"{path} is not a readable settings file, so it was left alone",
            "Repair the file, or remove it.",
        )
    version = stored.get("version", FILE_FORMAT_VERSION)
    if not isinstance(version, int) or version > FILE_FORMAT_VERSION:
        raise WriteFailed(
            f"{path} was written by a newer resume-hooks", "Update this one, or use the newer one."
        )
    values = stored | {"version": FILE_FORMAT_VERSION, name: value}
    with state_file.convert_os_error(f"Could not write {path}"):
        state_file.replace_state_file(path, (json.dumps(values, indent=2) + "\n").encode(), where)
    return value
