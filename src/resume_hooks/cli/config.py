"""``config``: the settings, where each value comes from, and how to change one."""

from __future__ import annotations

from typing import Any

from resume_hooks import settings
from resume_hooks.cli.output import table
from resume_hooks.cli.verbs.upkeep import ConfigOptions
from resume_hooks.errors import UsageError
from resume_hooks.storage import stored_settings


def config(options: ConfigOptions) -> None:
    """Print settings, after changing one if a value is given."""
    if options.key is not None and options.key not in settings.KEYS:
        raise UsageError(f"There is no setting '{options.key}'", f"Settings: {', '.join(settings.KEYS)}.")
    if options.key is not None and options.value is not None:
        stored_settings.store(options.key, options.value)
    rows = [row for row in _rows() if options.key in (None, row["key"])]
    shown = [(row["key"], f"{_text(row['value'])}  ({row['source']})  {row['about']}") for row in rows]
    options.emit({"file": settings.settings_file(), "settings": rows}, lambda: table(shown))


def _rows() -> list[dict[str, Any]]:
    return [
        {"key": name, **setting._asdict(), "about": settings.KEYS[name].about}
        for name, setting in settings.load().items()
    ]


def _text(value: object) -> str:
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
