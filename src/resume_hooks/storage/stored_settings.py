"""Write one setting to our settings file; what else is in it stays."""

from __future__ import annotations

import json

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, read_object
from resume_hooks.settings import VERSION, Value, is_damaged, read_one, settings_file
from resume_hooks.storage import state_file


def store(name: str, text: str, where: Where | None = None) -> Value:
    """Write one setting and return its value. UsageError for an unknown key or a bad value; WriteFailed."""
    value = read_one(name, text)
    where = where or Where()
    path = settings_file(where)
    values = {**_required(path), "version": VERSION, name: value}
    try:
        state_file.replace(path, (json.dumps(values, indent=2) + "\n").encode(), where)
    except OSError as error:
        raise WriteFailed(f"Could not write {path}: {error.strerror}", "Check the folder's permissions.") from error
    return value


def _required(path: str) -> dict[str, object]:
    """What a rewrite of the file must keep. WriteFailed if it would lose something."""
    values = read_object(path)
    if not values and is_damaged(path):
        raise WriteFailed(f"{path} can't be read as settings, so it was left alone", "Repair the file, or remove it.")
    version = values.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise WriteFailed(f"{path} was written by a newer resume-hooks", "Update this one, or use the newer one.")
    return values
