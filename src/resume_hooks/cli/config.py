"""``config``: the settings, where each value comes from, and how to change one."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks import settings
from resume_hooks.cli.options import VerbOptions, as_one_value, json_option
from resume_hooks.cli.output import table
from resume_hooks.errors import UsageError
from resume_hooks.storage import stored_settings


def _keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """What a shell offers for KEY."""
    return [key for key in settings.KEYS if key.startswith(incomplete)]


@click.command("config")
@click.argument("key", required=False, shell_complete=_keys)
@click.argument("value", required=False)
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Show every setting with its source, one setting, or set KEY to VALUE.

    The environment (RESUME_HOOKS_<KEY>) wins over the file, the plugin's own options over both.

    \b
    Examples:
      resume-hooks config
      resume-hooks config clipboard osc52
      resume-hooks config triggers_off "help, session"
    """
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
