"""``config``: the settings, where each value comes from, and how to change one."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks import settings
from resume_hooks.cli.output import emit, json_option, table
from resume_hooks.errors import UsageError
from resume_hooks.storage import stored_settings


def _keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """What a shell offers for KEY."""
    return [key for key in settings.KEYS if key.startswith(incomplete)]


@click.command("config")
@click.argument("key", required=False, shell_complete=_keys)
@click.argument("value", required=False)
@json_option
def command(key: str | None, value: str | None, as_json: bool) -> None:
    """Show every setting with its source, one setting, or set KEY to VALUE.

    The environment (RESUME_HOOKS_<KEY>) wins over the file, the plugin's own options over both.

    \b
    Examples:
      resume-hooks config
      resume-hooks config clipboard osc52
      resume-hooks config triggers_off "help, session"
    """
    if key is not None and key not in settings.KEYS:
        raise UsageError(f"There is no setting '{key}'", f"Settings: {', '.join(settings.KEYS)}.")
    if key is not None and value is not None:
        stored_settings.store(key, value)
    rows = [row for row in _rows() if key in (None, row["key"])]
    shown = [(row["key"], f"{_text(row['value'])}  ({row['source']})  {row['about']}") for row in rows]
    emit("config", {"file": settings.settings_file(), "settings": rows}, lambda: table(shown), as_json=as_json)


def _rows() -> list[dict[str, Any]]:
    rows = []
    for name, setting in settings.load().items():
        value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
        rows.append({"key": name, "value": value, "source": setting.source, "about": settings.KEYS[name].about})
    return rows


def _text(value: object) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
