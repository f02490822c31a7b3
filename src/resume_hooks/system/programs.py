"""Start programs. All other Python modules use this module, and shell scripts use hooks/programs.

A project must never determine which program is started. Programs are searched for outside the
project, run in the root folder, and get only the listed environment variables. Therefore the
project cannot put files into a program's working folder or above it. A caller that needs another
folder or the whole environment passes ``folder`` or ``environ``.

This module needs only the standard library and Python 3.9. Some modules are imported late, which
saves a prompt some milliseconds.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, Mapping, NoReturn, Optional, Sequence, Tuple

from resume_hooks.untrusted_folders import (
    ROOT_FOLDER,
    is_outside_projects,
    project_roots,
    user_home,
)

if TYPE_CHECKING:
    import subprocess

_INHERITED_VARIABLE_NAMES = frozenset(
    {"USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ"}
    | {"DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE"}
    | {"TMUX", "TMUX_PANE", "TMUX_TMPDIR", "STY", "SSH_CONNECTION", "SSH_TTY", "WSL_DISTRO_NAME", "WSL_INTEROP"}
    | {"CLAUDE_CONFIG_DIR", "CLAUDE_PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CODEX_HOME", "RESUME_HOOKS_HOME"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    | {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_PROXY"}
    | {"UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_OFFLINE"}
    | {"PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT", "UV_NATIVE_TLS"}
    | {"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "WINDIR"}
)  # fmt: skip
"""The environment variables that every program gets, about the user, displays and network access.

They include the package sources of pip and uv. These are harmless, because the packages that we
install must match our digests.
"""

_INHERITED_PATH_VARIABLE_NAMES = frozenset(
    {"HOME", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}
    | {"SSL_CERT_DIR", "SSL_CERT_FILE", "PIP_CERT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}
)
"""Variables with the path of a file or folder. They are passed to a program unless the path is in
the project."""


def program_environment(env: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment for a program: the listed variables of ``env``, and PATH without the project."""
    projects = project_roots(env)
    passed_variables = {}
    for name, value in env.items():
        if name in _INHERITED_VARIABLE_NAMES or name.startswith("LC_"):
            passed_variables[name] = value
    if "HOME" in env:
        # The project may have set HOME, where pip and other programs look for their settings.
        passed_variables["HOME"] = user_home()
    for name in _INHERITED_PATH_VARIABLE_NAMES & env.keys():
        if is_outside_projects(env[name], projects):
            passed_variables[name] = env[name]
    return {**passed_variables, "PATH": search_path(env)}


def search_path(env: Mapping[str, str]) -> str:
    """Return the folders on PATH that are absolute and not in the project.

    The result is never ``""``, which would mean the current folder.
    """
    return _compute_search_path(env.get("PATH", ""), tuple(project_roots(env)))


@lru_cache(maxsize=8)
def _compute_search_path(path: str, projects: Tuple[str, ...]) -> str:
    """Compute the result of ``search_path``.

    The result is cached, because resolving all folders takes a millisecond.
    """
    return (
        os.pathsep.join(
            folder for folder in path.split(os.pathsep) if is_outside_projects(folder, projects)
        )
        or os.defpath
    )


def find_program(name: str, env: Mapping[str, str]) -> Optional[str]:
    """Return the absolute path of the program with this name or path.

    Return None if the program is not found outside the project. shutil.which is not used, because
    importing shutil takes 6 ms.
    """
    if name == sys.executable:  # This program is already running.
        return name
    suffixes = ("", ".exe") if os.name == "nt" else ("",)
    if os.path.dirname(name):
        if is_outside_projects(os.path.dirname(name), project_roots(env)):
            folders = [os.path.dirname(name)]
        else:
            folders = []
    else:
        folders = search_path(env).split(os.pathsep)
    for folder in folders:
        for suffix in suffixes:
            path = os.path.join(folder, os.path.basename(name) + suffix)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None


def temporary_root(env: Mapping[str, str]) -> str:
    """Return the folder in which temporary folders are created.

    This is TMPDIR, unless TMPDIR is in the project, because the project could put files into it.
    """
    configured_folder = env.get("TMPDIR") or env.get("TEMP", "")
    is_outside = is_outside_projects(configured_folder, project_roots(env))
    if is_outside and os.path.isdir(configured_folder):
        return configured_folder
    return "/tmp"  # noqa: S108 - made private


def start_program(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    folder: str = ROOT_FOLDER,
    environ: Optional[Mapping[str, str]] = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program. ``options`` are passed to ``subprocess.Popen``.

    ``env`` is our environment, which shows where the project is. ``folder`` and ``environ`` are for
    programs that need a different folder or more variables: the user's editor, our own code, git
    with our git folder, and the client. Raise FileNotFoundError if ``find_program`` does not find
    the program.
    """
    import subprocess

    program = find_program(command[0], env)
    if program is None:
        raise FileNotFoundError(2, "No such file or directory", command[0])
    if environ is None:
        program_variables = program_environment(env)
    else:
        program_variables = {**environ, "PATH": search_path(env)}
    return subprocess.Popen([program, *command[1:]], cwd=folder, env=program_variables, **options)


def run_program(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    timeout: Optional[float] = None,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program as ``start_program`` does, and wait until it exits.

    If it does not exit within ``timeout`` seconds, kill it and raise ``subprocess.TimeoutExpired``.
    """
    import subprocess

    with start_program(command, env, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def replace_process(
    program: str, arguments: Sequence[str], folder: str, environ: Mapping[str, str]
) -> NoReturn:
    """Replace this process with the client, as if the user had started it in ``folder``.

    The client gets the environment ``environ``. Raise OSError on failure.
    """
    os.chdir(folder)
    os.execve(program, [program, *arguments], environ)  # noqa: S606 - no shell is wanted
