"""The only way in which our Python starts a program. hooks/programs is that of the shell scripts.

Invariant: a project never decides what is started. A program is looked for outside the project, runs in the root folder
and gets the variables of a list; whatever it looks for in its working folder or above, the project has put nothing
there. Who has a reason for another folder or for the whole environment says so: ``folder`` and ``environ`` are given.
Standard library, Python 3.9; what is imported late would cost a prompt milliseconds.

The project is the client's folder and the working folder, each with the outermost repository around it. The user's home
folder is none, nor is what lies above it: some keep it in a repository, and their own programs lie in it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NoReturn, Optional, Sequence

if TYPE_CHECKING:
    import subprocess

ROOT = os.path.abspath(os.sep)
"""Where programs run: nothing in it is a project's, and nothing is above it."""

_PASSED = frozenset(
    {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ"}
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
    {"TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}
    | {"SSL_CERT_DIR", "SSL_CERT_FILE", "PIP_CERT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}
)
"""Variables that name files which decide what a program does: passed unless they lie in the project."""


def environment(env: Mapping[str, str]) -> Dict[str, str]:
    """What a program gets of ``env``: the variables of our list, and PATH without the project's folders."""
    projects = _projects(env)
    found = {name: value for name, value in env.items() if name in _PASSED or name.startswith("LC_")}
    for name in _PASSED_OUTSIDE & env.keys():
        if _is_outside(env[name], projects):
            found[name] = env[name]
    return {**found, "PATH": search_path(env)}


def search_path(env: Mapping[str, str]) -> str:
    """PATH without folders that are relative or the project's; never ``""``, the current one."""
    projects = _projects(env)
    folders = [folder for folder in env.get("PATH", "").split(os.pathsep) if _is_outside(folder, projects)]
    return os.pathsep.join(folders) or os.defpath


def find(name: str, env: Mapping[str, str]) -> Optional[str]:
    """The absolute path of the program ``name``, which may be one; None if there is none outside the project.

    shutil.which would cost 6 ms to import.
    """
    if name == sys.executable:  # it runs already
        return name
    endings = ("", ".exe") if os.name == "nt" else ("",)
    if os.path.dirname(name):
        folders = [os.path.dirname(name)] if _is_outside(os.path.dirname(name), _projects(env)) else []
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
    return named if _is_outside(named, _projects(env)) and os.path.isdir(named) else "/tmp"  # noqa: S108 - made private


def start(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    folder: str = ROOT,
    environ: Optional[Mapping[str, str]] = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program; ``options`` are those of ``Popen``. FileNotFoundError where it is not found, as ``find`` has it.

    ``env`` is ours: it says what the project is. ``folder`` and ``environ`` are for programs that need another folder,
    or more variables: an editor of the user's, our own code, git with a folder of ours, and the client.
    """
    import subprocess

    program = find(words[0], env)
    if program is None:
        raise FileNotFoundError(2, "No such file or directory", words[0])
    given = environment(env) if environ is None else {**environ, "PATH": search_path(env)}
    return subprocess.Popen([program, *words[1:]], cwd=folder, env=given, **options)


def run(
    words: Sequence[str], env: Mapping[str, str], *, timeout: Optional[float] = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Start a program as ``start`` does and wait for its end. Also ``subprocess.TimeoutExpired``: then it is killed."""
    import subprocess

    with start(words, env, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def become(program: str, words: Sequence[str], folder: str, environ: Mapping[str, str]) -> NoReturn:
    """Become the client, as if the user had started it by hand in ``folder``: with all that is the user's. OSError."""
    os.chdir(folder)
    os.execve(program, [program, *words], environ)  # noqa: S606 - no shell is wanted


def _projects(env: Mapping[str, str]) -> List[str]:
    """The real folders of the project, each with a slash behind it."""
    folders = [env.get("CLAUDE_PROJECT_DIR", "")]
    try:
        folders.append(os.getcwd())
    except OSError:  # it is gone, and all that was in it
        folders.append(env.get("PWD", ""))
    home = os.path.join(os.path.realpath(_home()), "")
    found = []
    for folder in folders:
        if os.path.isabs(folder):
            root = _outermost(os.path.realpath(folder), home)
            if root:
                found.append(os.path.join(root, ""))
    return found


def _home() -> str:
    """The user's home folder by the system's list of users: HOME may be the project's word."""
    try:
        import pwd  # exists where there are users in our sense

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return os.path.expanduser("~") if os.name == "nt" else ROOT


def _outermost(folder: str, home: str) -> str:
    """The outermost repository around a folder below the home, else the folder; ``""`` for the home, or one above."""
    if home.startswith(os.path.join(folder, "")):
        return ""
    found, above = folder, os.path.dirname(folder)
    while not home.startswith(os.path.join(above, "")):
        if os.path.lexists(os.path.join(above, ".git")):
            found = above
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    return found


def _is_outside(path: str, projects: List[str]) -> bool:
    """Whether a path is absolute and lies in no project, by what it really leads to."""
    if not os.path.isabs(path):
        return False
    real = os.path.join(os.path.realpath(path), "")
    return not any(real.startswith(project) for project in projects)
