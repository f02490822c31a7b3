"""``config`` shows and changes settings. ``install`` registers the plugin with the client."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

import click

from resume_hooks import settings
from resume_hooks.archive.vault import permission
from resume_hooks.cli.output import COMPLETION_VARIABLE, facts_table
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.upkeep import ConfigOptions, InstallOptions
from resume_hooks.errors import ExitCode, ResumeHooksError, UsageError
from resume_hooks.hooks.triggers import TRIGGER_TABLE, find_trigger_name
from resume_hooks.maintenance.uninstall import (
    REMOVE_MARKETPLACE_COMMAND,
    describe_written_files,
    list_paths_to_purge,
    list_remaining_files,
    remove_paths,
)
from resume_hooks.paths import Where
from resume_hooks.sessions import held_links
from resume_hooks.storage import stored_settings
from resume_hooks.system import claude_cli, programs
from resume_hooks.system.claude_settings import find_policy_file
from resume_hooks.system.plugin_files import (
    MARKETPLACE_NAME,
    PLUGIN_NAME,
    assemble_plugin,
    is_installed_package,
    plugin_folder,
)
from resume_hooks.system.text import format_count

MAX_COMMAND_SECONDS = 120  # the time limit in seconds for one command of the client
MAX_LISTED_PATHS = 12  # the maximum number of paths in one folder that a dry run lists one by one
DEFAULT_INSTALL_ANSWER_FIELDS = {
    "plugin": "",
    "commands": [],
    "ran": False,
    "goes": [],
    "stays": [],
    "script": "",
}
OPEN_SESSIONS_NOTE = (
    "an open session above 60,000 tokens uses the new setting after its next resume"
)
SESSIONS_ARE_KEPT_NOTE = "Your sessions stay, including those created by handoff."


def print_or_change_settings(options: ConfigOptions) -> None:
    """Print the settings. If a value was given, change the setting first."""
    if options.key in settings.FORMER_SETTINGS:
        raise UsageError(
            f"{options.key} is no longer a setting",
            f"The reason: {settings.FORMER_SETTINGS[options.key]}.",
        )
    if options.key is not None and options.key not in settings.SETTING_DEFINITIONS:
        raise UsageError(
            f"There is no setting '{options.key}'",
            f"Settings: {', '.join(settings.SETTING_DEFINITIONS)}.",
        )
    if options.key is not None and options.value is not None:
        if options.key == "triggers_off":
            words = settings.parse_setting("triggers_off", options.value)
            if isinstance(words, tuple):
                unknown_words = [
                    word for word in words if find_trigger_name(word) not in TRIGGER_TABLE
                ]
            else:
                unknown_words = []
            if unknown_words:
                valid_names = dict.fromkeys(
                    row.command or row.name for row in TRIGGER_TABLE.values()
                )
                raise UsageError(
                    f"There is no trigger '{unknown_words[0]}'",
                    f"Triggers: {', '.join(valid_names)}.",
                )
        stored_settings.store_setting(options.key, options.value)
    rows_by_name = {
        name: (row, settings.SETTING_DEFINITIONS[name].description)
        for name, row in settings.load_settings().items()
        if options.key in {None, name}
    }
    table_rows = [
        (name, f"{settings.format_value(row.value)}  ({row.source})  {about}")
        for name, (row, about) in rows_by_name.items()
    ]
    rows = [
        ValueWithFields(row, {"key": name, "about": about})
        for name, (row, about) in rows_by_name.items()
    ]
    data = {"file": settings.settings_file(), "settings": rows}
    if options.key is None:
        notes = settings.describe_former_settings()
    else:
        notes = []
    notes += _list_vault_notes(options.where) if "vault" in rows_by_name else []
    notes += _list_compaction_notes(options.where) if "compaction" in rows_by_name else []
    if options.key == "compaction" and options.value is not None and "@" in options.value:
        notes.append(OPEN_SESSIONS_NOTE)
    options.print_answer(data, lambda: facts_table(table_rows), notes)


def _list_compaction_notes(where: Where) -> list[str]:
    path = find_policy_file(where)
    if not path or settings.load_settings(where)["compaction"].value == "client":
        return []
    return [
        (
            f"the setting compaction has no effect here: because of the policy in {path}, Claude Code "
            "makes every compaction itself"
        )
    ]


def _list_vault_notes(where: Where) -> list[str]:
    if permission.check_archiving_allowed(where).is_allowed or not os.path.isdir(
        held_links.links_folder(where)
    ):
        return list(filter(None, [permission.format_waiting_notice(where)]))
    count = len(list(held_links.links_without_client_file(where)))
    if count:
        lost_text = f", together with {format_count(count, 'file')} that Claude Code no longer has"
    else:
        lost_text = ""
    if count:
        keep_hint = "; to keep them: resume-hooks config vault on, then: resume-hooks restore"
    else:
        keep_hint = ""
    return [
        (
            "The links that preserve sessions are removed at the next start of Claude Code, or "
            f"by the next restore{lost_text}{keep_hint}"
        )
    ]


def install_or_remove_plugin(options: InstallOptions) -> ExitCode:
    """Register the plugin with the client, or remove the plugin, or print a script for completion.

    Return 1 if the client refused to remove the plugin, else 0.
    """
    options.refuse_combination("completion_shell", "must_remove")
    if options.must_purge and not options.must_remove:
        raise UsageError("--purge needs --remove", "Add --remove.")
    if options.must_remove:
        return _remove_plugin(options)
    if options.completion_shell is not None:
        script = _make_completion_script(options.completion_shell)
        options.print_answer({**DEFAULT_INSTALL_ANSWER_FIELDS, "script": script}, lambda: script)
    else:
        _register_plugin(options)
    return 0


def _make_completion_script(shell: str) -> str:
    # Imported late: the module that lists sessions takes 30 ms to load, and only this option needs
    # it.
    from click.shell_completion import get_completion_class

    from resume_hooks.cli.complete_sessions import register_bash_completion

    register_bash_completion()
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise UsageError(f"There is no completion for {shell}", "resume-hooks install --help")
    return (
        completion_class(
            click.get_current_context().find_root().command, {}, "resume-hooks", COMPLETION_VARIABLE
        )
        .source()
        .strip()
    )


def _register_plugin(options: InstallOptions) -> None:
    folder = plugin_folder()
    commands = [
        ["claude", "plugin", "marketplace", "add", folder],
        ["claude", "plugin", "install", f"{PLUGIN_NAME}@{MARKETPLACE_NAME}"],
    ]
    if any(
        name.split("@")[0] == PLUGIN_NAME for name in claude_cli.read_enabled_plugins(os.getcwd())
    ):
        # Some clients copied the plugin when they installed it. This command updates their copy.
        commands.append(["claude", "plugin", "update", f"{PLUGIN_NAME}@{MARKETPLACE_NAME}"])
    if not options.dry_run:
        assemble_plugin(folder)
        _share_packages_with_plugin(folder, options.where)
    was_run = not options.dry_run and run_client_commands(commands)
    lines = [shlex.join(command) for command in commands]
    data = {**DEFAULT_INSTALL_ANSWER_FIELDS, "plugin": folder, "commands": lines, "ran": was_run}
    success_text = "Installed. Start Claude Code and type /full."
    if options.dry_run:
        heading = "These commands would run:"
    else:
        heading = "Run these to install the plugin:"
    commands_text = "\n  ".join([heading, *lines])
    options.print_answer(data, lambda: success_text if was_run else commands_text)


def _share_packages_with_plugin(folder: str, where: Where) -> None:
    """If pipx or uv installed this command, let the plugin use the command's packages.

    Errors are ignored. After an error, or if this command is removed later, the next start of a
    session installs the plugin's own packages.
    """
    if is_installed_package() and sys.prefix != sys.base_prefix:
        installer = os.path.join(folder, "hooks", "install.py")
        data_folder = os.path.join(
            where.config, "plugins", "data", f"{PLUGIN_NAME}-{MARKETPLACE_NAME}"
        )
        command = [sys.executable, "-I", installer, "--now", "--tool", data_folder]
        pipe = subprocess.PIPE
        programs.run_program(
            command, where.environ, timeout=MAX_COMMAND_SECONDS, stdout=pipe, stderr=pipe
        )


def run_client_commands(commands: list[list[str]]) -> bool:
    """Run commands of the client, one after the other. Return False if the client is not on PATH.

    Raise ResumeHooksError if a command fails.
    """
    where = Where()
    client = claude_cli.find_client(where)
    if client is None:
        return False
    pipe = subprocess.PIPE
    for command in commands:
        try:
            # The client gets the whole environment, because its provider may need variables from
            # it. The current folder does not matter: the client registers the plugin in the user's
            # settings.
            completed = programs.run_program(
                [client, *command[1:]],
                where.environ,
                environ=where.environ,
                timeout=MAX_COMMAND_SECONDS,
                stdout=pipe,
                stderr=pipe,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResumeHooksError(
                f"{shlex.join(command)} could not be run: {error}", "Run the command by hand."
            ) from error
        if completed.returncode:
            output = (
                (completed.stderr or completed.stdout).decode("utf-8", "replace").strip()[-400:]
            )
            raise ResumeHooksError(
                f"{shlex.join(command)} failed: {output}", "Run the command by hand."
            )
    return True


def _remove_plugin(options: InstallOptions) -> ExitCode:
    """Remove the plugin and the files that the user asked to remove. Return 1 if the client refused."""
    where = options.where
    removed_paths = list_paths_to_purge(where.state) if options.must_purge else None
    if options.must_purge and options.must_ask("--purge"):
        click.confirm(
            (
                "Remove the links between sessions (which exist nowhere else), the settings and "
                f"the index in {where.state}?"
            ),
            abort=True,
            err=True,
        )
    commands = [["claude", "plugin", "uninstall", f"{PLUGIN_NAME}@{MARKETPLACE_NAME}"]]
    if claude_cli.marketplace_folder(MARKETPLACE_NAME) == plugin_folder():
        commands.append(list(REMOVE_MARKETPLACE_COMMAND))
    documents_text = describe_written_files(where)
    was_run, warning = False, ""
    try:
        was_run = not options.dry_run and run_client_commands(commands)
    # The plugin may never have been registered. Its state can be deleted even then.
    except ResumeHooksError as error:
        warning = error.message
    if removed_paths is not None and not options.dry_run:
        remove_paths(where.state, removed_paths)
    file_rows = list_remaining_files(where, removed_paths, commands)
    lines = [shlex.join(command) for command in commands]
    list_remaining_paths = [row.path for row in file_rows]
    data = {
        **DEFAULT_INSTALL_ANSWER_FIELDS,
        "plugin": PLUGIN_NAME,
        "commands": lines,
        "ran": was_run,
        "goes": removed_paths or [],
        "stays": list_remaining_paths,
    }

    def format_removal() -> str:
        if options.dry_run:
            heading = "These commands would run:"
        else:
            heading = "To remove the plugin run:"
        if was_run:
            first_line = "The plugin was removed."
        else:
            first_line = "\n  ".join([heading, *lines])
        removed_lines = _list_paths_to_remove(removed_paths or []) if options.dry_run else []
        remaining_lines = [
            f"Not removed: {path} ({description}; {removal})"
            for path, description, removal in file_rows
        ]
        return "\n".join(
            filter(
                None,
                [
                    first_line,
                    *removed_lines,
                    *remaining_lines,
                    documents_text,
                    SESSIONS_ARE_KEPT_NOTE,
                ],
            )
        )

    options.print_answer(data, format_removal, [warning] if warning else [])
    return int(bool(warning))


def _list_paths_to_remove(paths: Sequence[str]) -> list[str]:
    """Return a line for each path that a dry run would remove.

    If a folder has more than ``MAX_LISTED_PATHS`` of the paths, return one line with their number
    instead.
    """
    lines = []
    for folder, group in itertools.groupby(paths, os.path.dirname):
        paths_in_folder = list(group)
        if len(paths_in_folder) > MAX_LISTED_PATHS:
            lines.append(
                f"Would be removed: {format_count(len(paths_in_folder), 'file')} in {folder}"
            )
        else:
            lines += [f"Would be removed: {path}" for path in paths_in_folder]
    return lines
