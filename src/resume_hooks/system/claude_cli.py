"""Read information about the installed client: its program and version, its plugins and their hooks.

Files are only read. A damaged file is treated like an empty file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from resume_hooks.paths import Where, read_json_object
from resume_hooks.system import programs
from resume_hooks.system.claude_settings import settings_files
from resume_hooks.system.subprocesses import run_and_read_output

OLDEST_TESTED_CLIENT_VERSION = (2, 1, 112)  # the oldest client with which the plugin is tested
VERSION_TIMEOUT_SECONDS = 10  # time limit in seconds for ``claude --version``


def find_client(where: Where) -> str | None:
    """Return the path of the client's program, or None if it is not installed.

    The program is searched for on PATH, and then in the folders where the client's installers put
    it.
    """
    installer_folders = (
        os.path.join(where.config, "local"),
        os.path.join(where.environ.get("HOME", "/"), ".local", "bin"),
    )
    path = os.pathsep.join([programs.search_path(where.environ), *installer_folders])
    return programs.find_program("claude", {**where.environ, "PATH": path})


def read_client_version() -> tuple[int, ...] | None:
    """Return the version of the client on PATH, such as (2, 1, 329).

    Return None if there is no client on PATH or if it does not print its version.
    """
    out = run_and_read_output(
        ["claude", "--version"], os.environ, time.monotonic() + VERSION_TIMEOUT_SECONDS
    )
    words = (out or b"").decode("utf-8", "replace").split()
    numbers = words[0].split(".") if words else []
    if numbers and all(map(str.isdecimal, numbers)):
        return tuple(map(int, numbers))
    return None


def find_settings_file_that_enables(key: str, cwd: str) -> str:
    """Return the settings file with the highest precedence that sets ``key`` to true, or ``""``."""
    return next(
        (
            path
            for path in reversed(settings_files(cwd, Where()))
            if read_json_object(path).get(key) is True
        ),
        "",
    )


def read_enabled_plugins(cwd: str) -> dict[str, bool]:
    """Return for each plugin (``name@marketplace``) whether the client's settings enable it."""
    is_enabled: dict[str, bool] = {}
    for path in settings_files(cwd, Where()):
        plugins = read_json_object(path).get("enabledPlugins")
        if isinstance(plugins, dict):
            for name, plugin_state in plugins.items():
                if isinstance(name, str):
                    is_enabled[name] = plugin_state is True
    return is_enabled


def iterate_prompt_hooks(cwd: str) -> Iterator[tuple[str, str]]:
    """Yield the source and the command of every UserPromptSubmit hook.

    The source is the settings file that contains the hook, or the name of the plugin.
    """
    for path in settings_files(cwd, Where()):
        for command in _iterate_hook_commands(read_json_object(path).get("hooks")):
            yield (path, command)
    installed = read_json_object(
        os.path.join(Where().config, "plugins", "installed_plugins.json")
    ).get("plugins")
    for name, installations in installed.items() if isinstance(installed, dict) else ():
        for installation in installations if isinstance(installations, list) else ():
            if isinstance(installation, dict):
                root = installation.get("installPath")
            else:
                root = None
            if isinstance(root, str):
                declared_hooks = read_json_object(os.path.join(root, "hooks", "hooks.json")).get(
                    "hooks"
                )
                for command in _iterate_hook_commands(declared_hooks):
                    yield (name, command)


def read_marketplace(name: str) -> object:
    """Return the client's entry for a marketplace, or None if it is not known to the client."""
    return read_json_object(os.path.join(Where().config, "plugins", "known_marketplaces.json")).get(
        name
    )


def marketplace_folder(name: str) -> str:
    """Return the local folder from which a marketplace was added, or ``""``."""
    entry = read_marketplace(name)
    source = entry.get("source") if isinstance(entry, dict) else None
    path = source.get("path") if isinstance(source, dict) else None
    if isinstance(path, str):
        return path
    return ""


def _iterate_hook_commands(hooks: object) -> Iterator[str]:
    if isinstance(hooks, dict):
        groups = hooks.get("UserPromptSubmit")
    else:
        groups = None
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, dict):
            handlers = group.get("hooks")
        else:
            handlers = None
        for handler in handlers if isinstance(handlers, list) else ():
            if isinstance(handler, dict) and isinstance(handler.get("command"), str):
                yield handler["command"]
