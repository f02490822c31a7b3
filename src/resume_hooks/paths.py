"""Paths: the client's config folder, its project folders, our state folder, and small JSON files in them.

Standard library only and readable by Python 3.9: the hooks' fallback imports it before the engine
is installed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import unicodedata
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional

from resume_hooks.untrusted_folders import is_in_project_or_repository, user_home

MAX_KEY = 200  # longer project keys are cut to this many characters and get a hash
MAX_JSON_BYTES = 1024 * 1024  # the maximum size in bytes of a small JSON file

TRANSCRIPT_SUFFIX = ".jsonl"  # the extension of every transcript
TOOL_RESULTS = (
    "tool-results"  # the folder next to a session for outputs too long for its transcript
)
# a folder in the config folder: one subfolder per session with earlier states of the user's files
FILE_HISTORY = "file-history"
# a folder in the config folder: one subfolder per session with the client's tasks, a JSON file each
TASKS = "tasks"
# the variable that sets one project folder for every working directory
PROJECT_FOLDER_VARIABLE = "CLAUDE_CODE_PROJECT_DIR_NAME"

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
MAX_FOLDER_NAME = 64
_FOLDER_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
"""Reserved device names on Windows, which the client refuses on every system."""

_HEX = frozenset("0123456789abcdef")


class Where:
    """The folders of a run: the client's config folder, its project folders and our state folder.

    Entry points create it once and pass it on. ``environ`` is the environment that it was made
    from, by default this process's.
    """

    __slots__ = ("config", "environ", "file_history", "projects", "state")

    def __init__(self, environ: Optional[Mapping[str, str]] = None) -> None:
        env = os.environ if environ is None else environ
        home = env.get("CLAUDE_CONFIG_DIR") or os.path.join(
            env.get("HOME") or os.path.expanduser("~"), ".claude"
        )
        self.environ: Mapping[str, str] = env
        self.config: str = unicodedata.normalize("NFC", os.path.abspath(home))
        """``$CLAUDE_CONFIG_DIR`` or ``~/.claude``, in NFC like the client's path."""
        self.projects: str = os.path.join(self.config, "projects")
        """The folder of the project folders."""
        self.file_history: str = os.path.join(self.config, FILE_HISTORY)
        """The folder with earlier states of the user's files, one subfolder per session."""
        state_variable = env.get("RESUME_HOOKS_HOME") or ""
        default_state = os.path.join(self.config, "resume-hooks")
        self.state: str = (
            os.path.abspath(state_variable)
            if not state_folder_problem(state_variable, env)
            else default_state
        )
        """Our state folder, kept when the plugin is removed: ``$RESUME_HOOKS_HOME`` or a subfolder
        of the config folder."""


_OWN_STATE_NAMES = frozenset(["pending", "index.db.lock", "making", "one-maker", "vault-told"])
STATE_NAMES = _OWN_STATE_NAMES | {
    "audit.json",
    "backups",
    "data-rules.json",
    "held",
    "index",
    "index.db",
    "index.db-journal",
    "index.db-shm",
    "index.db-wal",
    "lock",
    "log",
    "mirrors",
    "plugin",
    "scrub",
    "stats.json",
    "team",
    "trash",
    "unpacked",
    "vault",
    "links.jsonl",
    "settings.json",
}
"""The names of files in our state folder.

An environment variable may name a folder as our state folder only if all files in the folder have
these names. A folder that is not empty must also contain ``STATE_MARK`` or a name that only we use.
"""

STATE_MARK = ".resume-hooks-state"
"""A file that we create in a state folder named by a variable."""


def state_folder_problem(folder: str, env: Mapping[str, str]) -> str:
    """Return why a folder named by a variable can't be our state folder, as the end of a sentence; ``""`` if it can.

    A repository's settings can set the variable. The state folder's files decide to which team we
    send sessions and where documents go, and we replace and delete files in it. So it must not be
    in the project or in any repository.
    """
    if not os.path.isabs(folder):
        # it would depend on the folder in which a hook runs, and put session data there
        return "it is not an absolute path"
    if is_in_project_or_repository(folder, env):
        return "it is in the project or in a repository"
    try:
        all_names = set(os.listdir(folder))
    except OSError:
        return ""  # it does not exist yet, or we can't change it
    names = set()
    for name in all_names:
        if not name.startswith(".") and name != "lost+found":
            names.add(name)
    if all_names & {STATE_MARK, *_OWN_STATE_NAMES}:
        foreign_names = names - STATE_NAMES
    else:
        foreign_names = names
    if foreign_names:
        return f"{min(foreign_names)} in it is not ours"
    return ""


def is_state_in_project(where: Where) -> bool:
    """Check whether the state folder is in the project, which could then decide where sessions and documents go.

    ``~/.claude`` in the user's home never counts, even as a link into the project.
    """
    default_state = os.path.join(user_home(), ".claude", "resume-hooks")
    return where.state != default_state and is_in_project_or_repository(where.state, where.environ)


def make_private_folder(path: str, where: Where) -> str:
    """Create the folder ``path`` (mode 0700) if it is missing, and return it. Raise OSError on failure.

    Also raise OSError if a folder on the way down from the state folder is a link or belongs to another user:
    our files would be stored elsewhere, or others could read them.
    """
    steps = _steps_from(where.state, path)
    for step in [] if steps else _steps_from(where.config, path) or [path]:
        os.makedirs(step, mode=0o700, exist_ok=True)
    for step in steps:
        # the next statement checks the folder, which anybody may have made
        with contextlib.suppress(FileExistsError):
            os.makedirs(step, mode=0o700, exist_ok=True)
        _require_own_folder(step)
    if steps and where.state == os.path.abspath(where.environ.get("RESUME_HOOKS_HOME") or "."):
        with contextlib.suppress(OSError):
            os.close(
                os.open(
                    os.path.join(where.state, STATE_MARK),
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                    0o600,
                )
            )
    return path


def is_private_folder(folder: str, where: Where) -> bool:
    """Check whether a folder of our state exists and neither it nor a folder above it is a link or another user's."""
    try:
        for step in _steps_from(where.state, folder) or [folder]:
            _require_own_folder(step)
    except OSError:
        return False
    return True


def is_own_file(status: os.stat_result) -> bool:
    """Check whether a file belongs to this user.

    For root every file does, because containers often run as root with another user's home.
    """
    return not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)


def _steps_from(top: str, path: str) -> List[str]:
    """Return the folders from ``top`` down to ``path``, both included; ``[]`` if ``path`` is elsewhere."""
    steps = [path]
    while steps[0] != top and len(steps[0]) > len(top):
        steps.insert(0, os.path.dirname(steps[0]))
    if steps[0] == top:
        return steps
    return []


def _require_own_folder(path: str) -> None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"{path} is a symbolic link", path)
    if not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(errno.EEXIST, f"{path} is not a folder", path)
    if not is_own_file(status):
        raise PermissionError(errno.EACCES, f"{path} belongs to another user", path)


def canonical_path(folder: str) -> str:
    """Return a folder's path as the client writes it: the real path in NFC.

    A string that can't be a path is only normalised.
    """
    try:
        return unicodedata.normalize("NFC", os.path.realpath(folder))
    except ValueError:
        return unicodedata.normalize("NFC", folder)


def project_key(folder: str) -> str:
    """Return the name of a working directory's project folder.

    Every UTF-16 unit outside ``[A-Za-z0-9]`` becomes ``-``. After 200 characters the rest is
    replaced by a hash of the whole path, which differs between clients, so look up long keys by
    their first 200 characters.
    """
    raw = canonical_path(folder).encode("utf-16-le", "surrogatepass")
    units = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    key = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in map(chr, units)
    )
    if len(key) <= MAX_KEY:
        return key
    return f"{key[:MAX_KEY]}-{_client_path_hash(units)}"


def folder_name_from_variable(where: Where) -> List[str]:
    """Return the project folder's name set by ``CLAUDE_CODE_PROJECT_DIR_NAME``, as a list of at most one.

    As in 2.1.329, it must be a plain name and requires ``CLAUDE_CONFIG_DIR``. Client 2.1.112 ignores the
    variable.
    """
    name = where.environ.get(PROJECT_FOLDER_VARIABLE, "")
    lower_name = name.lower()
    is_valid = (
        0 < len(name) <= MAX_FOLDER_NAME
        and _FOLDER_NAME_LETTERS.issuperset(lower_name)
        and lower_name not in _DEVICE_NAMES
    )
    if is_valid and where.environ.get("CLAUDE_CONFIG_DIR"):
        return [name]
    return []


def project_folder_names(
    cwd: str, where: Where, list_names: Optional[Callable[[], List[str]]] = None
) -> List[str]:
    """Return the names of the project folders that may contain sessions of ``cwd``, the likeliest first.

    2.1.329 also searches the key's folder if the variable names another. For a long key, every name
    with the same beginning counts, because clients hash the rest differently; ``list_names`` returns the
    existing folders' names.
    """
    key = project_key(cwd)
    key_names = []
    if len(key) > MAX_KEY:
        existing_names = list_names() if list_names else _list_names(where.projects)
        key_names = [name for name in existing_names if name.startswith(key[: MAX_KEY + 1])]
    return list(dict.fromkeys([*folder_name_from_variable(where), *(key_names or [key])]))


def project_folders(cwd: str, where: Where) -> List[str]:
    """Return the project folders that may contain sessions of ``cwd``; a long key may have several."""
    folders = []
    for name in project_folder_names(cwd, where):
        folders.append(os.path.join(where.projects, name))
    return folders


def is_session_id(text: object) -> bool:
    """Check whether ``text`` is a lower-case UUID. Only these session ids are used in paths."""
    if (
        not isinstance(text, str)
        or len(text) != 36
        or not text[8] == text[13] == text[18] == text[23] == "-"
    ):
        return False
    return _HEX.issuperset(text.replace("-", "", 4))


def session_id_from_path(path: str) -> Optional[str]:
    """Return the session id from a file name ``<uuid>.jsonl``, or None for any other name."""
    if path.endswith(TRANSCRIPT_SUFFIX):
        stem = os.path.basename(path)[: -len(TRANSCRIPT_SUFFIX)]
    else:
        stem = ""
    if is_session_id(stem):
        return stem
    return None


def find_session(session_id: str, where: Where) -> Optional[str]:
    """Return the file of a session id in any project, or None.

    Only regular, non-empty files count: clients leave empty stubs, and a symbolic link could lead
    anywhere.
    """
    if not is_session_id(session_id):
        return None
    paths = []
    for folder in all_project_folders(where):
        paths.append(os.path.join(folder, session_id + TRANSCRIPT_SUFFIX))
    files = [path for path in paths if is_session_file(path)]
    if files:
        return max(files, key=_modification_time)
    return None


def verify_session_path(path: str, session_id: str, where: Where) -> Optional[str]:
    """Return ``path`` if it is the file of ``session_id`` in a project folder, else None.

    Several projects may have copies of a session; the client's path identifies its own copy.
    """
    folder = os.path.dirname(path)
    is_in_project_folder = os.path.dirname(folder) == where.projects and not os.path.islink(folder)
    if is_in_project_folder and session_id_from_path(path) == session_id and is_session_file(path):
        return path
    return None


def all_project_folders(where: Where) -> List[str]:
    """Return every project folder, sorted, without symbolic links, which could lead anywhere."""
    return list_subfolders(where.projects)


def list_subfolders(folder: str) -> List[str]:
    """Return the subfolders of a folder, sorted, without links; ``[]`` if it can't be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def open_regular(
    path: str, *, follow: bool = True, dir_fd: Optional[int] = None, buffering: int = -1
) -> BinaryIO:
    """Open a regular file for reading, through links if ``follow``. Raise OSError for anything else.

    A pipe without a writer, or an endless device, would block a prompt for ever. A relative
    ``path`` is relative to ``dir_fd``, the descriptor of an open folder.
    """
    flags = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering)


def read_bytes_at(descriptor: int, length: int, offset: int) -> bytes:
    """Return up to ``length`` bytes of an open file from ``offset``.

    The file's position does not change, except on Windows.
    """
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)


def read_regular_file(path: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raise OSError if it is missing, not a regular file, or larger than ``max_bytes`` bytes.
    """
    with open_regular(path) as stream:
        raw = stream.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return raw


def read_json_object(path: str, limit: int = MAX_JSON_BYTES) -> Dict[str, Any]:
    """Return the object in a JSON file, or ``{}`` if it is missing, unreadable, too large or not an object."""
    try:
        value = json.loads(read_regular_file(path, limit))
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict):
        return value
    return {}


def is_session_file(path: str) -> bool:
    """Check whether ``path`` is a regular, non-empty file with a session's name, and not a link."""
    if session_id_from_path(path) is None:
        return False
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # ValueError for a NUL in a name
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _list_names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _modification_time(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0  # deleted since the listing


def _client_path_hash(units: list[int]) -> str:
    """Return the client's 32-bit string hash, in base 36."""
    value = 0
    for unit in units:
        value = ((value << 5) - value + unit) & 0xFFFFFFFF
    number = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _BASE36[rest] + digits
        if not number:
            return digits
