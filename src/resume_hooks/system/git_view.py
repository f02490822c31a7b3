"""Ask git about a repository whose settings are untrusted, through a git folder of our own.

git never uses the repository's own git folder. Our folder links to the repository's references,
index and objects, which are only data. The folder contains its own complete configuration, so git
ignores any filter, hook, monitor, external diff, pager or remote in the repository's configuration
or attributes. We let git read the repository's configuration only as a plain file (``git config
--file``), and copy only harmless settings from it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from resume_hooks.paths import Where, read_regular_file
from resume_hooks.system import programs
from resume_hooks.system.git_worktrees import worktree_git_folders
from resume_hooks.system.subprocesses import kill_process_group

MAX_PIPE_BYTES = 1 << 18  # maximum number of bytes that git can write before we read them
MAX_HEAD_FILE_BYTES = 4_096  # maximum size in bytes of a ``HEAD`` file
MAX_SHARED_INDEXES = 100  # maximum number of shared index files to link; a split index uses them
MAX_COPIED_SETTINGS = 100  # maximum number of settings to copy from a repository
KILL_GRACE_SECONDS = 0.1  # number of seconds to wait until a killed process has ended

GIT_BRANCH_REF_PREFIX = "refs/heads/"

_GIT_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
"""Environment variables that make git read no other settings, use no network, take no locks and
write no traces."""

_INHERITED_VARIABLE_NAMES = ("LANG", "LC_ALL", "SYSTEMROOT")
_FIXED_SETTINGS = (
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    f"core.hooksPath={os.devnull}",
)

_HARMLESS_SETTINGS = {
    **dict.fromkeys(
        (
            "core.filemode",
            "core.ignorecase",
            "core.symlinks",
            "core.trustctime",
            "core.precomposeunicode",
        ),
        ("true", "false"),
    ),
    "core.autocrlf": ("true", "false", "input"),
    "core.eol": ("lf", "crlf", "native"),
    "core.checkstat": ("default", "minimal"),
}
"""The settings that are copied from a repository or a user, with their allowed values.

These settings determine how files are compared.
"""

_UNCOPIED_SETTING_KEYS = ("core.bare", "extensions.partialclone")
_EXCLUDES_FILE_KEY = "core.excludesfile"
_ALLOWED_REPOSITORY_FORMATS = {
    "extensions.objectformat": ("sha1", "sha256"),
    "extensions.refstorage": ("files", "reftable"),
}
_TRACKING_KEY_EXPRESSION = r"branch\..*\.(remote|merge)|remote\..*\.fetch"
_NEEDED_KEY_EXPRESSION = "|".join(
    key.replace(".", r"\.")
    for key in (
        *_HARMLESS_SETTINGS,
        *_UNCOPIED_SETTING_KEYS,
        *_ALLOWED_REPOSITORY_FORMATS,
        _EXCLUDES_FILE_KEY,
    )
)

Settings = list[tuple[str, str]]


class GitView:
    """A view of a repository in which git cannot run any of the repository's code.

    The view is a context manager. ``branch`` is the name of the current branch, or ``""``. Raise
    OSError if git or the repository is missing, or if the repository cannot be read before the
    deadline.
    """

    def __init__(self, root: str, where: Where, deadline: float) -> None:
        self.root = root
        self.branch = ""
        self.is_bare = False
        self.is_partial = False
        self.has_upstream = False
        self.reflog = ""
        self._where, self._deadline = where, deadline
        self._git_processes: list[subprocess.Popen[bytes]] = []
        self._folder = ""
        self._options: list[str] = []
        self._environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as closing:
            closing.callback(self._end_processes_and_remove_folder)
            self._make_git_folder()
            closing.pop_all()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._end_processes_and_remove_folder()

    def start_git(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``git`` with these arguments. The process is ended when the context is left."""
        return self._start_git_process([*self._options, *arguments], self._environment)

    def read_output(
        self, git_process: subprocess.Popen[bytes], deadline: float, data: bytes = b""
    ) -> bytes | None:
        """Return the output of a git process, or ``b""`` if the process failed.

        If the process is not done at ``deadline``, kill it and return None. ``data`` is written to
        its stdin.
        """
        try:
            out, _ = git_process.communicate(
                data or None, timeout=max(0.001, deadline - time.monotonic())
            )
        except subprocess.TimeoutExpired:
            _kill_git(git_process)
            return None
        if git_process.returncode == 0:
            return out
        return b""

    def _make_git_folder(self) -> None:
        """Create our git folder with its configuration and its links to the repository."""
        worktree_folder, common_folder = worktree_git_folders(self.root)
        head = os.fsdecode(
            read_regular_file(os.path.join(worktree_folder, "HEAD"), MAX_HEAD_FILE_BYTES)
        )
        if head.startswith("ref:"):
            reference = head.removeprefix("ref:").strip()
        else:
            reference = ""
        if reference.startswith(GIT_BRANCH_REF_PREFIX):
            self.branch = reference.removeprefix(GIT_BRANCH_REF_PREFIX)
        else:
            self.branch = ""
        self._folder = folder = _make_temporary_folder(self._where, self.root)
        with open(
            os.path.join(folder, "HEAD"), "w", encoding="utf-8", errors="surrogateescape"
        ) as stream:
            stream.write(head)
        for name in ("refs", "packed-refs", "reftable", "shallow"):
            _link_if_exists(os.path.join(common_folder, name), os.path.join(folder, name))
        os.mkdir(os.path.join(folder, "info"))
        _link_if_exists(
            os.path.join(common_folder, "info", "exclude"), os.path.join(folder, "info", "exclude")
        )
        shared_indexes = (
            name for name in os.listdir(worktree_folder) if name.startswith("sharedindex.")
        )
        for name, _ in zip(shared_indexes, range(MAX_SHARED_INDEXES), strict=False):
            _link_if_exists(os.path.join(worktree_folder, name), os.path.join(folder, name))
        if self.branch:
            self.reflog = os.path.join(common_folder, "logs", GIT_BRANCH_REF_PREFIX, self.branch)
        self._environment = {
            **{
                key: self._where.environ[key]
                for key in _INHERITED_VARIABLE_NAMES
                if key in self._where.environ
            },
            **_GIT_ENVIRONMENT,
            "PATH": programs.search_path(self._where.environ),
            "HOME": folder,
            "XDG_CONFIG_HOME": folder,
            "GIT_DIR": folder,
            "GIT_WORK_TREE": self.root,
            "GIT_INDEX_FILE": os.path.join(worktree_folder, "index"),
            "GIT_OBJECT_DIRECTORY": os.path.join(common_folder, "objects"),
        }
        self._copy_settings(*self._read_settings(os.path.join(common_folder, "config")))

    def _read_settings(self, path: str) -> tuple[Settings, Settings]:
        """Return the settings that we need, first those of the user and then those of the repository.

        git reads the user's settings with all included files, but only the repository's own file.
        Raise TimeoutError if git is too slow.
        """
        environment = programs.program_environment(self._where.environ)
        user_variables: dict[str, str] = {}
        for key in ("HOME", "XDG_CONFIG_HOME"):
            if key in environment:
                user_variables[key] = environment[key]
        git_variables = {}
        for key in self._environment:
            if not key.startswith("GIT_CONFIG"):
                git_variables[key] = self._environment[key]
        git_variables.pop("XDG_CONFIG_HOME", None)
        runs = [
            self._start_git_process(
                ["config", "--null", "--get-regexp", f"^({_NEEDED_KEY_EXPRESSION})$"],
                {**git_variables, **user_variables},
            )
        ]
        if os.path.exists(path):
            words = [
                "config",
                "--file",
                path,
                "--null",
                "--get-regexp",
                f"^({_NEEDED_KEY_EXPRESSION}|{_TRACKING_KEY_EXPRESSION})$",
            ]
            runs.append(self._start_git_process(words, self._environment))
        outputs = [self.read_output(run, self._deadline) for run in runs]
        if None in outputs:
            raise TimeoutError
        user, *repository = [_parse_settings(output or b"") for output in outputs]
        return user, repository[0] if repository else []

    def _copy_settings(self, user_settings: Settings, repository_settings: Settings) -> None:
        """Write git's configuration: the harmless settings and the path of the user's ignore file."""
        repository_values = dict(repository_settings)
        self.is_bare = (
            repository_values.get("core.bare", "").lower() in {"true", "yes", "on", "1", ""}
            and "core.bare" in repository_values
        )
        self.is_partial = "extensions.partialclone" in repository_values
        formats = []
        for key, allowed_values in _ALLOWED_REPOSITORY_FORMATS.items():
            if repository_values.get(key) in allowed_values:
                formats.append(key)
        with open(os.path.join(self._folder, "config"), "w", encoding="ascii") as stream:
            stream.write(
                f"[core]\n\trepositoryformatversion = {1 if formats else 0}\n[extensions]\n"
            )
            stream.writelines(
                f"\t{key.partition('.')[2]} = {repository_values[key]}\n" for key in formats
            )
        values = []
        for key, value in user_settings + repository_settings:
            if value in _HARMLESS_SETTINGS.get(key, ()):
                values.append(f"{key}={value}")
        self._options = ["--no-pager", "--no-optional-locks"]
        for value in (
            *values[:MAX_COPIED_SETTINGS],
            *_FIXED_SETTINGS,
            f"{_EXCLUDES_FILE_KEY}={self._find_ignore_file(dict(user_settings).get(_EXCLUDES_FILE_KEY, ''))}",
        ):
            self._options += ["-c", value]
        self._environment |= self._build_upstream_environment(
            repository_settings, repository_values
        )

    def _find_ignore_file(self, configured_path: str) -> str:
        """Return the path of the user's global ignore file, from the user's settings or git's default."""
        environ = self._where.environ
        home = environ.get("HOME", "")
        if configured_path.startswith("~/"):
            return os.path.join(home, configured_path[2:])
        return configured_path or os.path.join(
            environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "ignore"
        )

    def _build_upstream_environment(
        self, repository_settings: Settings, repository_values: Mapping[str, str]
    ) -> dict[str, str]:
        """Return environment variables that tell git the upstream branch of the current branch."""
        remote = repository_values.get(f"branch.{self.branch}.remote", "")
        keys = {
            f"branch.{self.branch}.remote",
            f"branch.{self.branch}.merge",
            f"remote.{remote}.fetch",
        }
        pairs = [pair for pair in repository_settings if pair[0] in keys][:MAX_COPIED_SETTINGS]
        self.has_upstream = bool(
            self.branch and remote and f"branch.{self.branch}.merge" in repository_values
        )
        if not self.has_upstream:
            return {}
        environment = {"GIT_CONFIG_COUNT": str(len(pairs))}
        for number, (key, value) in enumerate(pairs):
            environment[f"GIT_CONFIG_KEY_{number}"], environment[f"GIT_CONFIG_VALUE_{number}"] = (
                key,
                value,
            )
        return environment

    def _start_git_process(
        self, arguments: list[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        run = programs.start_program(
            ["git", *arguments],
            self._where.environ,
            environ=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pipesize=MAX_PIPE_BYTES,
        )
        self._git_processes.append(run)
        return run

    def _end_processes_and_remove_folder(self) -> None:
        """End all processes that are still running, and remove our folder."""
        for run in self._git_processes:
            _kill_git(run)
        for folder in filter(
            None, (self._folder and os.path.join(self._folder, "info"), self._folder)
        ):
            with contextlib.suppress(OSError):
                for name in os.listdir(folder):
                    os.unlink(os.path.join(folder, name))
                os.rmdir(folder)


def _make_temporary_folder(where: Where, root: str) -> str:
    """Create a private folder outside the repository.

    The module tempfile is not used, because importing it would delay a prompt by 5 ms.
    """
    top = programs.temporary_root({**where.environ, "CLAUDE_PROJECT_DIR": root})
    path = os.path.join(top, f"resume-hooks-git-{os.urandom(12).hex()}")
    os.mkdir(path, 0o700)
    return path


def _link_if_exists(target: str, link: str) -> None:
    """Create a symbolic link at the path ``link`` that leads to ``target``, if the target exists."""
    if os.path.exists(target):
        os.symlink(os.path.abspath(target), link)


def _parse_settings(output: bytes) -> Settings:
    """Parse the output of ``git config --null``, in which each row is a key, a line feed and a value.

    A key without a value gets the value "true".
    """
    rows = (os.fsdecode(row).partition("\n") for row in output.split(b"\0") if row)
    settings = []
    for key, line, value in rows:
        settings.append((key, value if line else "true"))
    return settings


def _kill_git(git_process: subprocess.Popen[bytes]) -> None:
    """Kill a git process and its children.

    Its pipe is not read to the end, because a grandchild may keep the pipe open.
    """
    if git_process.poll() is None:
        kill_process_group(git_process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            git_process.wait(timeout=KILL_GRACE_SECONDS)
    for stream in (git_process.stdin, git_process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
