"""``config`` and ``install``: the settings, and the plugin's registration with the client."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import click

from resume_hooks import settings
from resume_hooks.archive.vault import permission
from resume_hooks.cli.output import COMPLETING, facts_table
from resume_hooks.cli.verbs.upkeep import ConfigOptions, InstallOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.hooks.triggers import ROWS, trigger_of
from resume_hooks.maintenance.uninstall import (
    REMOVE_MARKETPLACE,
    files_that_stay,
    notes_on_written_files,
    paths_to_purge,
    remove_paths,
)
from resume_hooks.paths import Where
from resume_hooks.sessions import held_links
from resume_hooks.storage import stored_settings
from resume_hooks.system import claude_cli, programs
from resume_hooks.system.claude_settings import policy_file
from resume_hooks.system.plugin_files import (
    MARKETPLACE,
    NAME,
    assemble_plugin,
    is_installed_package,
    plugin_folder,
)
from resume_hooks.system.text import format_count

LIMIT = 120  # seconds for one command of the client
NOTHING = {"plugin": "", "commands": [], "ran": False, "goes": [], "stays": [], "script": ""}
LINE_IN_OPEN_SESSIONS = (
    "an open session above 60,000 tokens uses the new line after its next resume"
)
SESSIONS = "Your sessions stay, including those created by handoff."


def config(options: ConfigOptions) -> None:
    """Print settings, after changing one if a value is given."""
    if options.key in settings.FORMER_SETTINGS:
        raise UsageError(
            f"{options.key} is no longer a setting",
            f"The reason: {settings.FORMER_SETTINGS[options.key]}.",
        )
    if options.key is not None and options.key not in settings.KEYS:
        raise UsageError(
            f"There is no setting '{options.key}'", f"Settings: {', '.join(settings.KEYS)}."
        )
    if options.key is not None and options.value is not None:
        if options.key == "triggers_off":
            words = settings.parse_setting("triggers_off", options.value)
            if isinstance(words, tuple):
                unknown = [word for word in words if trigger_of(word) not in ROWS]
            else:
                unknown = []
            if unknown:
                valid = dict.fromkeys(row.bare or row.name for row in ROWS.values())
                raise UsageError(
                    f"There is no trigger '{unknown[0]}'", f"Triggers: {', '.join(valid)}."
                )
        stored_settings.store_setting(options.key, options.value)
    known = {
        name: (row, settings.KEYS[name].about)
        for name, row in settings.load_settings().items()
        if options.key in {None, name}
    }
    shown = [
        (name, f"{settings.format_value(row.value)}  ({row.source})  {about}")
        for name, (row, about) in known.items()
    ]
    rows = [With(row, {"key": name, "about": about}) for name, (row, about) in known.items()]
    data = {"file": settings.settings_file(), "settings": rows}
    if options.key is None:
        notes = settings.describe_former_settings()
    else:
        notes = []
    notes += _vault_notes(options.where) if "vault" in known else []
    notes += _policy_notes(options.where) if "compaction" in known else []
    if options.key == "compaction" and options.value is not None and "@" in options.value:
        notes.append(LINE_IN_OPEN_SESSIONS)
    options.emit(data, lambda: facts_table(shown), notes)


def _policy_notes(where: Where) -> list[str]:
    path = policy_file(where)
    if not path or settings.load_settings(where)["compaction"].value == "client":
        return []
    return [
        (
            f"compaction has no effect here: under the policy in {path} Claude Code makes "
            "every compaction itself"
        )
    ]


def _vault_notes(where: Where) -> list[str]:
    if permission.archiving_allowed(where)[0] or not os.path.isdir(held_links.links_folder(where)):
        return list(filter(None, [permission.waiting_notice(where)]))
    last = len(list(held_links.links_without_client_file(where)))
    if last:
        lost = f", together with {format_count(last, 'file')} that Claude Code no longer has"
    else:
        lost = ""
    if last:
        keep = "; to keep them: resume-hooks config vault on, then: resume-hooks restore"
    else:
        keep = ""
    return [
        (
            "The links that hold sessions are removed at the next start of Claude Code, or "
            f"by restore{lost}{keep}"
        )
    ]


def install(options: InstallOptions) -> int:
    """Register the plugin, or remove it.

    Or print a shell's completion script. Return 1 if the client refused to remove the plugin.
    """
    options.refuse_together("completion", "remove")
    if options.purge and not options.remove:
        raise UsageError("--purge belongs to --remove", "Add --remove.")
    if options.remove:
        return _remove_plugin(options)
    if options.completion is not None:
        script = _completion_script(options.completion)
        options.emit({**NOTHING, "script": script}, lambda: script)
    else:
        _register_plugin(options)
    return 0


def _completion_script(shell: str) -> str:
    # The module that lists sessions takes 30 ms to load; only this option needs it.
    from click.shell_completion import get_completion_class

    from resume_hooks.cli.complete_sessions import register

    register()
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"There is no completion for {shell}", "resume-hooks install --help")
    return (
        kind(click.get_current_context().find_root().command, {}, "resume-hooks", COMPLETING)
        .source()
        .strip()
    )


def _register_plugin(options: InstallOptions) -> None:
    folder = plugin_folder()
    commands = [
        ["claude", "plugin", "marketplace", "add", folder],
        ["claude", "plugin", "install", f"{NAME}@{MARKETPLACE}"],
    ]
    if any(name.split("@")[0] == NAME for name in claude_cli.enabled_plugins(os.getcwd())):
        commands.append(
            ["claude", "plugin", "update", f"{NAME}@{MARKETPLACE}"]
        )  # older clients read a copy
    if not options.dry_run:
        assemble_plugin(folder)
        _lend_packages(folder, options.where)
    ran = not options.dry_run and run_all(commands)
    lines = [shlex.join(words) for words in commands]
    data = {**NOTHING, "plugin": folder, "commands": lines, "ran": ran}
    done = "Installed. Start Claude Code and type /full."
    if options.dry_run:
        head = "These would run:"
    else:
        head = "Run these to install the plugin:"
    todo = "\n  ".join([head, *lines])
    options.emit(data, lambda: done if ran else todo)


def _lend_packages(folder: str, where: Where) -> None:
    """Let the plugin use this command's packages from pipx or uv, so that it needs none of its own.

    If that fails, or if this command is removed, the next start of a session installs the plugin's
    own.
    """
    if is_installed_package() and sys.prefix != sys.base_prefix:
        installer = os.path.join(folder, "hooks", "install.py")
        data = os.path.join(where.config, "plugins", "data", f"{NAME}-{MARKETPLACE}")
        words = [sys.executable, "-I", installer, "--now", "--tool", data]
        pipe = subprocess.PIPE
        programs.run_program(words, where.environ, timeout=LIMIT, stdout=pipe, stderr=pipe)


def run_all(commands: list[list[str]]) -> bool:
    """Run commands of the client in order.

    Return False if it is not on PATH; raise ResumeHooksError if a command fails.
    """
    where = Where()
    client = claude_cli.client_executable(where)
    if client is None:
        return False
    pipe = subprocess.PIPE
    for words in commands:
        try:
            # The client needs the environment of its provider. It stores the plugin in the user's
            # settings, from any folder.
            done = programs.run_program(
                [client, *words[1:]],
                where.environ,
                environ=where.environ,
                timeout=LIMIT,
                stdout=pipe,
                stderr=pipe,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResumeHooksError(
                f"{shlex.join(words)} did not run: {error}", "Run it by hand."
            ) from error
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-400:]
            raise ResumeHooksError(f"{shlex.join(words)} failed: {said}", "Run it by hand.")
    return True


def _remove_plugin(options: InstallOptions) -> int:
    """Remove the plugin and the requested files; return 1 if the client refused."""
    where = options.where
    goes = paths_to_purge(where.state) if options.purge else None
    if options.purge and options.asks("--purge"):
        click.confirm(
            (
                "Remove links between sessions (they exist nowhere else), settings, index "
                f"in {where.state}?"
            ),
            abort=True,
            err=True,
        )
    commands = [["claude", "plugin", "uninstall", f"{NAME}@{MARKETPLACE}"]]
    if claude_cli.marketplace_folder(MARKETPLACE) == plugin_folder():
        commands.append(list(REMOVE_MARKETPLACE))
    documents = notes_on_written_files(where)
    ran, warning = False, ""
    try:
        ran = not options.dry_run and run_all(commands)
    # the state can be deleted even if the plugin was never installed
    except ResumeHooksError as error:
        warning = error.message
    if goes is not None and not options.dry_run:
        remove_paths(where.state, goes)
    stays = files_that_stay(where, goes, commands)
    lines = [shlex.join(words) for words in commands]
    stay = [row.path for row in stays]
    data = {
        **NOTHING,
        "plugin": NAME,
        "commands": lines,
        "ran": ran,
        "goes": goes or [],
        "stays": stay,
    }

    def text() -> str:
        if options.dry_run:
            head = "These would run:"
        else:
            head = "To remove the plugin run:"
        if ran:
            first = "The plugin is removed."
        else:
            first = "\n  ".join([head, *lines])
        gone = [f"Would go: {path}" for path in goes or [] if options.dry_run]
        kept = [f"Stays: {path} ({what}; {way})" for path, what, way in stays]
        return "\n".join(filter(None, [first, *gone, *kept, documents, SESSIONS]))

    options.emit(data, text, [warning] if warning else [])
    return int(bool(warning))
