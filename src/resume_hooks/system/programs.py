"""The only way in which our Python starts a program. hooks/programs is that of the shell scripts.

Invariant: a project never decides what is started. A program is looked for outside the project,
runs in the root folder and gets the variables of a list; whatever it looks for in its working
folder or above, the project has put nothing there. Who has a reason for another folder or for the
whole environment says so: ``folder`` and ``environ`` are given. Standard library, Python 3.9; what
is imported late would cost a prompt milliseconds.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, Mapping, NoReturn, Optional, Sequence, Tuple

from resume_hooks.untrusted_folders import ROOT, is_outside, projects_of, users_home

if TYPE_CHECKING:
    import subprocess

_PASSED = frozenset(
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
"""The variables that a program gets: who and where the user is, screens, ways to a network. Of those of pip and uv
where they get packages from: what we have them install must fit our digests."""

_PASSED_OUTSIDE = frozenset(
    {"HOME", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}
    | {"SSL_CERT_DIR", "SSL_CERT_FILE", "PIP_CERT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}
)
"""Variables that name files which decide what a program does: passed unless they lie in the project."""


def program_environment(env: Mapping[str, str]) -> Dict[str, str]:
    """What a program gets of ``env``: the variables of our list, and PATH without the project's folders."""
    projects = projects_of(env)
    found = {}
    for name, value in env.items():
        if name in _PASSED or name.startswith("LC_"):
            found[name] = value
    if "HOME" in env:
        found["HOME"] = (
            users_home()
        )  # which HOME may say otherwise: pip and others read their settings there
    for name in _PASSED_OUTSIDE & env.keys():
        if is_outside(env[name], projects):
            found[name] = env[name]
    return {**found, "PATH": search_path(env)}


def search_path(env: Mapping[str, str]) -> str:
    """PATH without folders that are relative or the project's; never ``""``, the current one."""
    return _path_outside(env.get("PATH", ""), tuple(projects_of(env)))


@lru_cache(maxsize=8)
def _path_outside(path: str, projects: Tuple[str, ...]) -> str:
    """See ``search_path``. To resolve all folders takes a millisecond, and one run starts several programs."""
    return (
        os.pathsep.join(folder for folder in path.split(os.pathsep) if is_outside(folder, projects))
        or os.defpath
    )


def find_program(name: str, env: Mapping[str, str]) -> Optional[str]:
    """The absolute path of the program ``name``, a name or a path.

    None if it is not found outside the project.

    shutil.which would cost 6 ms to import.
    """
    if name == sys.executable:  # it runs already
        return name
    endings = ("", ".exe") if os.name == "nt" else ("",)
    if os.path.dirname(name):
        if is_outside(os.path.dirname(name), projects_of(env)):
            folders = [os.path.dirname(name)]
        else:
            folders = []
    else:
        folders = search_path(env).split(os.pathsep)
    for folder in folders:
        for ending in endings:
            path = os.path.join(folder, os.path.basename(name) + ending)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None


def temporary_folders(env: Mapping[str, str]) -> str:
    """The folder for temporary ones: TMPDIR, unless that lies in the project, where programs would find its files."""
    named = env.get("TMPDIR") or env.get("TEMP", "")
    return named if is_outside(named, projects_of(env)) and os.path.isdir(named) else "/tmp"  # noqa: S108 - made private


def start_program(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    folder: str = ROOT,
    environ: Optional[Mapping[str, str]] = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program; ``options`` are those of ``Popen``.

    FileNotFoundError if ``find_program`` does not find it.

    ``env`` is ours: it says what the project is. ``folder`` and ``environ`` are for programs that
    need another folder, or more variables: an editor of the user's, our own code, git with a folder
    of ours, and the client.
    """
    import subprocess

    program = find_program(words[0], env)
    if program is None:
        raise FileNotFoundError(2, "No such file or directory", words[0])
    if environ is None:
        given = program_environment(env)
    else:
        given = {**environ, "PATH": search_path(env)}
    return subprocess.Popen([program, *words[1:]], cwd=folder, env=given, **options)


def run_program(
    words: Sequence[str], env: Mapping[str, str], *, timeout: Optional[float] = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Start a program as ``start_program`` does and wait for its end.

    ``subprocess.TimeoutExpired`` kills it.
    """
    import subprocess

    with start_program(words, env, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def become_program(
    program: str, words: Sequence[str], folder: str, environ: Mapping[str, str]
) -> NoReturn:
    """Become the client, as if the user had started it by hand in ``folder``: with all that is the user's. OSError."""
    os.chdir(folder)
    os.execve(program, [program, *words], environ)  # noqa: S606 - no shell is wanted
