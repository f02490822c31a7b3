"""Find the client's folders and our state folder, and read files in them safely.

The hooks import this module even before the engine is installed, so it uses only the standard
library and must run on Python 3.9.
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

# The maximum length of a project key without a hash. In a longer key, a hash replaces the
# characters beyond this length.
MAX_PROJECT_KEY_CHARACTERS = 200
MAX_JSON_BYTES = 1024 * 1024  # The maximum number of bytes of a small JSON file.

TRANSCRIPT_SUFFIX = ".jsonl"  # The extension of transcripts.
# The name of a folder next to a session's file, for outputs that are too long for the transcript.
TOOL_RESULTS_FOLDER_NAME = "tool-results"
# A folder in the configuration folder. It has a subfolder for each session, with earlier states of
# the user's files.
FILE_HISTORY_FOLDER_NAME = "file-history"
# A folder in the configuration folder. It has a subfolder for each session, with a JSON file for
# each of the client's tasks.
TASKS_FOLDER_NAME = "tasks"
# The environment variable with the name of one project folder. If it is set, the client uses this
# project folder whatever the current folder is.
PROJECT_FOLDER_VARIABLE = "CLAUDE_CODE_PROJECT_DIR_NAME"

_BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MAX_FOLDER_NAME_CHARACTERS = 64
_FOLDER_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
"""Device names on Windows. The client refuses them on every system."""

_HEX_DIGITS = frozenset("0123456789abcdef")


class Where:
    """The folders of this run: the client's configuration and project folders, and our state folder.

    Each entry point creates one instance and passes it on. The folders are determined from the
    environment ``environ``, which by default is that of this process.
    """

    __slots__ = ("config", "environ", "file_history", "projects", "state")

    def __init__(self, environ: Optional[Mapping[str, str]] = None) -> None:
        env = os.environ if environ is None else environ
        home = env.get("CLAUDE_CONFIG_DIR") or os.path.join(
            env.get("HOME") or os.path.expanduser("~"), ".claude"
        )
        self.environ: Mapping[str, str] = env
        self.config: str = unicodedata.normalize("NFC", os.path.abspath(home))
        """``$CLAUDE_CONFIG_DIR`` or ``~/.claude``, in Unicode's form NFC, as the client writes it.
        """
        self.projects: str = os.path.join(self.config, "projects")
        """The folder that contains the project folders."""
        self.file_history: str = os.path.join(self.config, FILE_HISTORY_FOLDER_NAME)
        """The folder with earlier states of the user's files. It has a subfolder for each session.
        """
        state_variable = env.get("RESUME_HOOKS_HOME") or ""
        default_state = os.path.join(self.config, "resume-hooks")
        self.state: str = (
            os.path.abspath(state_variable)
            if not state_folder_problem(state_variable, env)
            else default_state
        )
        """Our state folder: ``$RESUME_HOOKS_HOME``, or a subfolder of the configuration folder. It
        is not deleted when the plugin is removed."""


_OWN_STATE_FILE_NAMES = frozenset(["pending", "index.db.lock", "making", "one-maker", "vault-told"])
STATE_FILE_NAMES = _OWN_STATE_FILE_NAMES | {
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
"""Names of the files in our state folder.

An environment variable may name a different state folder only if all files in that folder have
these names. If the folder is not empty, at least one file must also be ``STATE_MARKER_NAME`` or
have a name that no other program uses.
"""

STATE_MARKER_NAME = ".resume-hooks-state"
"""The name of a file that we create in a state folder if an environment variable names the folder.
"""


def state_folder_problem(folder: str, environ: Mapping[str, str]) -> str:
    """Return why the folder in an environment variable can't be our state folder, or ``""`` if it can.

    A repository's settings can set the variable. Files in the state folder determine which team
    receives sessions and where documents are written, and we replace and delete files there.
    Therefore the folder must not be in the project or in any repository. The reason is worded as
    the end of a sentence.
    """
    if not os.path.isabs(folder):
        # The path would depend on the folder in which a hook runs, and could be in a repository.
        return "it is not an absolute path"
    if is_in_project_or_repository(folder, environ):
        return "it is in the project or in a repository"
    try:
        all_names = set(os.listdir(folder))
    except OSError:
        return ""  # The folder does not exist yet, or it can't be used.
    names = set()
    for name in all_names:
        if not name.startswith(".") and name != "lost+found":
            names.add(name)
    if all_names & {STATE_MARKER_NAME, *_OWN_STATE_FILE_NAMES}:
        foreign_names = names - STATE_FILE_NAMES
    else:
        foreign_names = names
    if foreign_names:
        return f"it contains {min(foreign_names)}, which is not a file of resume-hooks"
    return ""


def is_state_folder_in_project(where: Where) -> bool:
    """Check whether the state folder is in the project.

    If it is, the project's files could decide where sessions are sent. ``~/.claude`` in the user's
    home does not count as part of a project, even if it is a link into one.
    """
    default_state = os.path.join(user_home(), ".claude", "resume-hooks")
    return where.state != default_state and is_in_project_or_repository(where.state, where.environ)


def make_private_folder(path: str, where: Where) -> str:
    """Create a folder with mode 0700 if it is missing, and return its path. Raise OSError on failure.

    Also raise OSError if the folder, or a folder between it and the state folder, is a link (our
    files might be stored elsewhere) or belongs to another user (who could read our files).
    """
    steps = _list_folders_down_to(where.state, path)
    for step in [] if steps else _list_folders_down_to(where.config, path) or [path]:
        os.makedirs(step, mode=0o700, exist_ok=True)
    for step in steps:
        # Another process may have created the folder. The next statement checks it.
        with contextlib.suppress(FileExistsError):
            os.makedirs(step, mode=0o700, exist_ok=True)
        _require_folder_owned_by_user(step)
    if steps and where.state == os.path.abspath(where.environ.get("RESUME_HOOKS_HOME") or "."):
        with contextlib.suppress(OSError):
            os.close(
                os.open(
                    os.path.join(where.state, STATE_MARKER_NAME),
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                    0o600,
                )
            )
    return path


def is_private_folder(folder: str, where: Where) -> bool:
    """Check whether a folder exists in our state folder and no other user controls it.

    Neither the folder nor a folder between it and the state folder may be a link or belong to
    another user.
    """
    try:
        for step in _list_folders_down_to(where.state, folder) or [folder]:
            _require_folder_owned_by_user(step)
    except OSError:
        return False
    return True


def is_own_file(status: os.stat_result) -> bool:
    """Check whether a file belongs to this user.

    For root the result is always True, because containers often run as root in another user's home.
    """
    return not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)


def _list_folders_down_to(top_folder: str, path: str) -> List[str]:
    """Return all folders from ``top_folder`` down to ``path``, including both.

    Return ``[]`` if ``path`` is not below ``top_folder``.
    """
    steps = [path]
    while steps[0] != top_folder and len(steps[0]) > len(top_folder):
        steps.insert(0, os.path.dirname(steps[0]))
    if steps[0] == top_folder:
        return steps
    return []


def _require_folder_owned_by_user(path: str) -> None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"{path} is a symbolic link", path)
    if not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(errno.EEXIST, f"{path} is not a folder", path)
    if not is_own_file(status):
        raise PermissionError(errno.EACCES, f"{path} belongs to another user", path)


def canonical_path(folder: str) -> str:
    """Return a folder's path as the client writes it: without links, and in Unicode's form NFC.

    A text that can't be a path is only converted to NFC.
    """
    try:
        return unicodedata.normalize("NFC", os.path.realpath(folder))
    except ValueError:
        return unicodedata.normalize("NFC", folder)


def project_key(folder: str) -> str:
    """Return the name of the project folder for the working directory ``folder`` (its project key).

    Every UTF-16 unit outside ``[A-Za-z0-9]`` becomes ``-``. In a key of more than 200 characters, a
    hash of the path replaces the characters after the 200th. Clients compute different hashes, so
    look for a long key by its first 200 characters.
    """
    raw = canonical_path(folder).encode("utf-16-le", "surrogatepass")
    units = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    key = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in map(chr, units)
    )
    if len(key) <= MAX_PROJECT_KEY_CHARACTERS:
        return key
    return f"{key[:MAX_PROJECT_KEY_CHARACTERS]}-{_client_path_hash(units)}"


def list_project_folder_name_from_variable(where: Where) -> List[str]:
    """Return the name in ``CLAUDE_CODE_PROJECT_DIR_NAME`` as a list, or ``[]`` if the name has no effect.

    As in client 2.1.329, the name has an effect only if it is a plain name and
    ``CLAUDE_CONFIG_DIR`` is set. Client 2.1.112 ignores the variable.
    """
    name = where.environ.get(PROJECT_FOLDER_VARIABLE, "")
    lower_name = name.lower()
    is_valid = (
        0 < len(name) <= MAX_FOLDER_NAME_CHARACTERS
        and _FOLDER_NAME_LETTERS.issuperset(lower_name)
        and lower_name not in _DEVICE_NAMES
    )
    if is_valid and where.environ.get("CLAUDE_CONFIG_DIR"):
        return [name]
    return []


def project_folder_names(
    cwd: str, where: Where, list_existing_names: Optional[Callable[[], List[str]]] = None
) -> List[str]:
    """Return the names of the project folders that may contain sessions of the folder ``cwd``.

    If ``CLAUDE_CODE_PROJECT_DIR_NAME`` has an effect, the name in this variable comes first. The
    key of ``cwd`` follows, because client 2.1.329 also searches that folder. Clients compute
    different hashes for a long key, so in place of a long key the result contains all existing
    names that begin with the first 200 characters of the key. ``list_existing_names`` returns the
    names of the existing folders.
    """
    key = project_key(cwd)
    key_names = []
    if len(key) > MAX_PROJECT_KEY_CHARACTERS:
        existing_names = (
            list_existing_names() if list_existing_names else _list_names(where.projects)
        )
        key_names = [
            name
            for name in existing_names
            if name.startswith(key[: MAX_PROJECT_KEY_CHARACTERS + 1])
        ]
    return list(
        dict.fromkeys([*list_project_folder_name_from_variable(where), *(key_names or [key])])
    )


def project_folders(cwd: str, where: Where) -> List[str]:
    """Return the paths of the project folders that may contain sessions of the folder ``cwd``."""
    folders = []
    for name in project_folder_names(cwd, where):
        folders.append(os.path.join(where.projects, name))
    return folders


def is_session_id(text: object) -> bool:
    """Check whether ``text`` is a UUID in lower case. Other texts are never used as session ids in paths."""
    if (
        not isinstance(text, str)
        or len(text) != 36
        or not text[8] == text[13] == text[18] == text[23] == "-"
    ):
        return False
    return _HEX_DIGITS.issuperset(text.replace("-", "", 4))


def session_id_from_path(path: str) -> Optional[str]:
    """Return the session id in a path whose file name is ``<uuid>.jsonl``. Return None for other names."""
    if path.endswith(TRANSCRIPT_SUFFIX):
        stem = os.path.basename(path)[: -len(TRANSCRIPT_SUFFIX)]
    else:
        stem = ""
    if is_session_id(stem):
        return stem
    return None


def find_session(session_id: str, where: Where) -> Optional[str]:
    """Return the file of the session with an id, in any project. Return None if there is no such file.

    Empty files and links are ignored: clients leave empty files behind, and a link may lead
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
    """Return ``path`` if it is a file of the session in a project folder, else None.

    ``path`` is the path that the client named. It matters because several projects may contain
    files of the session.
    """
    folder = os.path.dirname(path)
    is_in_project_folder = os.path.dirname(folder) == where.projects and not os.path.islink(folder)
    if is_in_project_folder and session_id_from_path(path) == session_id and is_session_file(path):
        return path
    return None


def all_project_folders(where: Where) -> List[str]:
    """Return all project folders, sorted. Links are left out, because they may lead anywhere."""
    return list_subfolders(where.projects)


def list_subfolders(folder: str) -> List[str]:
    """Return the paths of a folder's subfolders, sorted and without links.

    Return ``[]`` if the folder can't be listed.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def open_regular(
    path: str, *, follow: bool = True, dir_fd: Optional[int] = None, buffering: int = -1
) -> BinaryIO:
    """Open a regular file for reading. Raise OSError if it is not regular, for example if it is a pipe.

    Reading from a pipe without a writer, or from a device, might never end. ``follow`` allows
    links. A relative path starts at the open folder with the descriptor ``dir_fd``.
    """
    flags = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering)


def read_bytes_at(descriptor: int, length: int, offset: int) -> bytes:
    """Return up to ``length`` bytes of an open file, starting at ``offset``.

    The file's position does not change, except on Windows.
    """
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)


def read_regular_file(path: str, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raise OSError if the file is missing, is not regular, or has more than ``max_bytes`` bytes.
    """
    with open_regular(path) as stream:
        raw = stream.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return raw


def read_json_object(path: str, max_bytes: int = MAX_JSON_BYTES) -> Dict[str, Any]:
    """Return the object in a JSON file. Return ``{}`` if the file is unreadable or contains no object."""
    try:
        value = json.loads(read_regular_file(path, max_bytes))
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict):
        return value
    return {}


def is_session_file(path: str) -> bool:
    """Check whether a path is a regular file that has a session's name, is not empty and is not a link."""
    if session_id_from_path(path) is None:
        return False
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # The path may contain a NUL character.
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
        return 0.0  # The file was deleted after it was listed.


def _client_path_hash(utf16_units: list[int]) -> str:
    """Return the client's 32-bit hash of a path in base 36. ``utf16_units`` are the path's UTF-16 units."""
    value = 0
    for unit in utf16_units:
        value = ((value << 5) - value + unit) & 0xFFFFFFFF
    number = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _BASE36_DIGITS[rest] + digits
        if not number:
            return digits
