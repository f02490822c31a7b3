"""Write one setting to our settings file; what else is in it stays."""

from __future__ import annotations

import json

from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.paths import Where, read_object
from resume_hooks.settings import VERSION, Value, is_damaged, load, read_one, settings_file
from resume_hooks.storage import state_file

_REMEDIES = {
    "environment": "RESUME_HOOKS_{} says so, and wins over our file: unset it first.",
    "plugin": (
        "An option of the plugin says so, and wins over our file: /plugin configure "
        "resume-hooks changes it."
    ),
}
"""What to do where another source is stronger than our file."""


def store_setting(name: str, text: str, where: Where | None = None) -> Value:
    """Write one setting and return its value. UsageError for an unknown key or a bad value.

    WriteFailed.

    UsageError as well where a variable or an option of the plugin gives another value: that one
    would stay in force.
    """
    value = read_one(name, text)
    where = where or Where()
    given, source = load(where)[name]
    if source in _REMEDIES and given != value:
        raise UsageError(f"{name} stays {given}", _REMEDIES[source].format(name.upper()))
    path = settings_file(where)
    there = read_object(path)  # what a rewrite must keep
    if not there and is_damaged(path):
        raise WriteFailed(
            f"{path} can't be read as settings, so it was left alone",
            "Repair the file, or remove it.",
        )
    version = there.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise WriteFailed(
            f"{path} was written by a newer resume-hooks", "Update this one, or use the newer one."
        )
    values = there | {"version": VERSION, name: value}
    with state_file.convert_os_error(f"Could not write {path}", "Check the folder's permissions."):
        state_file.replace_state_file(path, (json.dumps(values, indent=2) + "\n").encode(), where)
    return value
