"""``install``: registers the plugin with the client, or says how."""

from __future__ import annotations

import shlex
import shutil
import subprocess

from resume_hooks.cli.verbs.upkeep import InstallOptions
from resume_hooks.errors import ResumeHooksError
from resume_hooks.system.plugin_files import MARKETPLACE, NAME, assemble, plugin_folder

LIMIT = 120  # seconds that one command of the client may take


def install(options: InstallOptions) -> None:
    """Register the plugin, or say how."""
    folder = plugin_folder()
    commands = [
        ["claude", "plugin", "marketplace", "add", folder],
        ["claude", "plugin", "install", f"{NAME}@{MARKETPLACE}"],
    ]
    if not options.dry_run:
        assemble(folder)
    ran = not options.dry_run and run_all(commands)
    lines = [shlex.join(words) for words in commands]
    data = {"plugin": folder, "commands": lines, "ran": ran, "goes": [], "stays": []}
    done = "Installed. Start Claude Code and type >help."
    head = "These would run:" if options.dry_run else "Run these to install the plugin:"
    todo = "\n  ".join([head, *lines])
    options.emit(data, lambda: done if ran else todo)


def run_all(commands: list[list[str]]) -> bool:
    """Run commands of the client in order; false where it is not on PATH, ResumeHooksError where one fails."""
    client = shutil.which("claude")
    if client is None:
        return False
    for words in commands:
        try:
            done = subprocess.run([client, *words[1:]], capture_output=True, text=True, timeout=LIMIT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResumeHooksError(f"{shlex.join(words)} did not run: {error}", "Run it by hand.") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-400:]
            raise ResumeHooksError(f"{shlex.join(words)} failed: {said}", "Run it by hand.")
    return True
