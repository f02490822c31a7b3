"""The verbs that check, repair and set up."""

from __future__ import annotations

import click

from resume_hooks import settings
from resume_hooks.cli.options import (
    DRY_RUN_OPTION,
    OneSessionOptions,
    VerbOptions,
    argument,
    flag,
    option,
)


def _complete_setting_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    names = []
    for key in settings.SETTING_DEFINITIONS:
        if key.startswith(incomplete):
            names.append(key)
    return names


class FsckOptions(OneSessionOptions, function="resume_hooks.cli.fsck:check_sessions"):
    """Report the defects of a session, with their records and their effect on clients.

    The exit code is 1 if there are errors or warnings. Notes are irregularities that clients
    themselves write and ignore. The session is only read. With --repair, a repaired child gets
    every record that can still be reached.

    \b
    Examples:
      resume-hooks fsck
      resume-hooks fsck 5e12a303 --json
      resume-hooks fsck --all
      resume-hooks fsck 5e12a303 --repair
      resume-hooks fsck 5e12a303 --repair --branch 9b1c7f52-...
    """

    everywhere: bool = flag("--all", help="Check every session of every project.")
    must_repair: bool = flag("--repair", help="Write a repaired child.")
    branch: str | None = option(
        metavar="UUID", help="With --repair: keep the branch that ends at this record."
    )
    dry_run: bool = DRY_RUN_OPTION


class DoctorOptions(VerbOptions, function="resume_hooks.cli.doctor:diagnose_installation"):
    """Check the client, plugin, hooks, engine, transcripts, permissions, log, index and clipboard.

    The exit code is 1 if a problem was found. A bug report (--bundle) contains versions, the codes
    of the findings, the settings that you changed, and the lines of our code where bugs occurred.
    It is printed or written to a file, and never sent. Read it before you share it.

    The search index contains the words of your sessions and their positions, but not the full text.
    You can delete it at any time: the next search creates it again. With --index, doctor makes no
    checks: it shows, updates or rebuilds the index.

    \b
    Examples:
      resume-hooks doctor
      resume-hooks doctor --json
      resume-hooks doctor --bundle -o report.json
      resume-hooks doctor --index update
    """

    must_bundle: bool = flag(
        "--bundle", help="Print data for a bug report, without titles, prompts, paths or names."
    )
    report_path: str | None = option(
        "--output", "-o", metavar="FILE", help="With --bundle: write the report to this new file."
    )
    index_action: str | None = option(
        "--index",
        type=click.Choice(("status", "update", "rebuild")),
        help="Only show, update or rebuild the search index.",
    )


class ConfigOptions(VerbOptions, function="resume_hooks.cli.setup:print_or_change_settings"):
    """Show every setting with its source, show one setting, or set KEY to VALUE.

    The environment (RESUME_HOOKS_<KEY>) overrides the file, and the plugin's own options override
    both. The environment does not override handoff_dir, handoff_sends and team_model_search,
    because a repository could set the variables.

    \b
    Examples:
      resume-hooks config
      resume-hooks config clipboard osc52
      resume-hooks config triggers_off "full, recall"
    """

    key: str | None = argument(required=False, shell_complete=_complete_setting_names)
    value: str | None = argument(required=False)


class InstallOptions(VerbOptions, function="resume_hooks.cli.setup:install_or_remove_plugin"):
    """Register the plugin with Claude Code, or print the commands for it if claude is not on PATH.

    The plugin uses the packages of this command if pipx or uv installed it. Otherwise it installs
    its own packages in the background when the next session starts. Run this again after an upgrade.
    --remove removes the plugin, and lists the files that stay and the commands that remove them.
    Sessions always stay.

    --completion prints a script with which Tab completes verbs, options and the sessions of this
    folder. It installs nothing. Tab offers the ids of sessions with their titles, also for a part of
    a title.

    \b
    Examples:
      resume-hooks install
      resume-hooks install --dry-run
      resume-hooks install --remove
      resume-hooks install --remove --purge --dry-run
      resume-hooks install --completion bash >> ~/.bashrc
      resume-hooks install --completion zsh > "${fpath[1]}/_resume-hooks"
      resume-hooks install --completion fish > ~/.config/fish/completions/resume-hooks.fish
    """

    must_remove: bool = flag("--remove", help="Remove the plugin from Claude Code.")
    must_purge: bool = flag(
        "--purge", help="With --remove: also remove our state: links, settings, index, logs."
    )
    yes: bool = flag(help="Do not ask before purging.")
    completion_shell: str | None = option(
        "--completion",
        type=click.Choice(("bash", "zsh", "fish")),
        help="Print the completion script for this shell.",
    )
    dry_run: bool = flag(help="Show what would change and what would stay, but change nothing.")


class SlashOptions(
    VerbOptions, function="resume_hooks.cli.slash:answer_slash_command", hidden=True
):
    """Answer a slash command of the plugin in the session SESSION_ID.

    The text after the command is read from stdin.
    """

    trigger: str = argument(metavar="VERB")
    session_id: str = argument()
    as_json: bool = False
